package clean

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// The time for rendering Markdown grows with the square of the size of a block, and
// the memory with a table's width times its height. These bounds limit both; documents
// that people write are far smaller.
const (
	maxMarkdown = 1 << 20 // bytes of a document
	maxMarks    = 5_000   // characters of one block that may be markup
	maxLines    = 5_000   // lines of one block
	maxNesting  = 40      // nested quotes and lists
	maxIndent   = 200     // bytes of white space before a line
	maxCells    = 300_000 // cells of all tables, if every block were a table
)

// reader renders Markdown. HTML in it is omitted.
var reader = goldmark.New(goldmark.WithExtensions(
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough,
))

// policy is the HTML that is sent to browsers.
var policy = newPolicy()

// newPolicy allows what Markdown can express and nothing else: no attribute that could
// conflict with one of the page.
func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "blockquote", "ul", "ol", "li",
		"pre", "code", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+#-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("title").OnElements("a", "img")
	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("src").Matching(regexp.MustCompile(`^https://`)).OnElements("img")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(true)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}

// markdown returns the HTML of a text.
func markdown(source string) (string, error) {
	if isPlain(source) {
		return "<p>" + source + "</p>", nil
	}
	if err := checkMarkdown(source); err != nil {
		return "", err
	}
	var html bytes.Buffer
	if err := reader.Convert([]byte(source), &html); err != nil {
		return "", fmt.Errorf("reading Markdown: %w", err)
	}
	return strings.TrimSpace(policy.SanitizeReader(&html).String()), nil
}

// isPlain reports whether a text has no markup, as most descriptions in OpenAPI.
func isPlain(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !isAlnum(c) && (i == 0 || i == len(text)-1 || c != ' ' && c != ',' && c != '(' && c != ')') && (i == 0 || c != '.') {
			return false
		}
	}
	return text != "" && (text[0] < '0' || text[0] > '9') && !strings.Contains(text, "  ") && len(text) < 4<<10
}

// checkMarkdown refuses documents that would take too long to render.
func checkMarkdown(source string) error {
	if len(source) > maxMarkdown {
		return problemf("", "is %d bytes; of Markdown at most %d are read", len(source), maxMarkdown)
	}
	var b block
	cells, number := 0, 0
	for line := range strings.Lines(source) {
		number++
		text := strings.TrimSpace(line)
		if text == "" {
			cells += b.cells()
			b = block{}
			continue
		}
		b.add(text)
		switch {
		case indent(line) > maxIndent:
			return problemf("", "line %d begins with more than %d spaces", number, maxIndent)
		case nesting(line) > maxNesting:
			return problemf("", "line %d nests more than %d quotes and lists", number, maxNesting)
		case b.marks > maxMarks:
			return problemf("", "line %d: the paragraph or table has more than %d special characters; an empty line ends it", number, maxMarks)
		case b.lines > maxLines:
			return problemf("", "line %d: the paragraph or table has more than %d lines; an empty line ends it", number, maxLines)
		case cells+b.cells() > maxCells:
			return problemf("", "line %d: the tables have more than %d cells together", number, maxCells)
		}
	}
	return nil
}

// A block is consecutive lines that are not empty.
type block struct{ lines, marks, width int }

func (b *block) add(line string) {
	b.lines++
	marks, bars := 0, 0
	for i := range len(line) {
		switch line[i] {
		case '|':
			bars++
		case '*', '_', '~', '`', '[', ']', '!', '<', '&', '\\':
			marks++
		}
	}
	b.marks += marks
	b.width = max(b.width, bars)
}

// cells returns how many cells a table of these lines would have.
func (b *block) cells() int {
	if b.width == 0 {
		return 0
	}
	return (b.width + 1) * b.lines
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// nesting returns how many quotes and lists a line begins at most.
func nesting(line string) (n int) {
	for i := range len(line) {
		switch c := line[i]; {
		case c == '>' || c == '-' || c == '+' || c == '*' || c == '.' || c == ')':
			n++
		case c != ' ' && c != '\t' && (c < '0' || c > '9'):
			return n
		}
	}
	// Only marks: a thematic break, which may be of any length.
	if strings.Trim(line, "-* \t\r\n") == "" && !strings.Contains(strings.TrimSpace(line), " ") {
		return 0
	}
	return n
}
