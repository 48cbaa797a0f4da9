package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// longestLine bounds how much of a line an excerpt shows, in characters.
const longestLine = 160

var (
	// keyed matches a line that begins with a key.
	keyed = regexp.MustCompile(`^\s*(?:-\s+)?["']?[\w.-]+["']?\s*:(?:\s|$)`)
	// secretive matches a key that holds a secret or looks as if it did, also in
	// the middle of a line and when misspelt at its end.
	secretive = regexp.MustCompile(`(?i)[\w.-]*(?:secret|token|passw|_key|url|dsn|credential)[\w.-]*["']?\s*:`)
)

// A source is the text of one configuration file.
type source struct {
	name  string
	lines []string
}

func newSource(name string, text []byte) source {
	return source{name: name, lines: strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")}
}

func (s source) at(line, col int) Origin {
	return Origin{Kind: FromFile, Name: s.name, Line: line, Col: col}
}

// excerpt returns a line with a caret below col. What may be a secret is ***.
// With keyOnly everything behind the key at col goes: the value of an unknown
// key may be a secret whose key was misspelt.
func (s source) excerpt(line, col int, keyOnly bool) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	shown := s.masked(line)
	if keyOnly {
		shown = cutBehindKey(shown, col)
	}
	runes := []rune(strings.Map(printable, shown))
	if len(runes) > longestLine {
		runes = append(runes[:longestLine], '…')
	}
	if col < 1 || col > len(runes)+1 {
		col = len(runes) + 1
	}
	number := fmt.Sprintf("%5d | ", line)
	return number + string(runes) + "\n" + strings.Repeat(" ", len(number)-2) + "| " + strings.Repeat(" ", col-1) + "^"
}

func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case unicode.IsPrint(r):
		return r
	}
	return '?'
}

// masked returns a line without what may be a secret: what follows a secretive
// key on it, and all of it when it is the continuation of one.
func (s source) masked(line int) string {
	text := s.lines[line-1]
	if at := secretive.FindStringIndex(text); at != nil {
		if rest := strings.TrimSpace(text[at[1]:]); rest != "" {
			return text[:at[1]] + " ***"
		}
		return text
	}
	if s.continuesSecret(line) {
		return indentOf(text) + "***"
	}
	return text
}

// continuesSecret reports whether a line lies inside the value of a secretive
// key: one that it is indented below, or the nearest key above a line without
// a key of its own.
func (s source) continuesSecret(line int) bool {
	text := s.lines[line-1]
	indent, nearest := len(indentOf(text)), !keyed.MatchString(text)
	for i := line - 2; i >= 0; i-- {
		above := s.lines[i]
		if strings.TrimSpace(above) == "" {
			continue
		}
		parent := len(indentOf(above)) < indent
		isKeyed := keyed.MatchString(above)
		if (parent || nearest && isKeyed) && secretive.MatchString(above) {
			return true
		}
		if parent {
			indent = len(indentOf(above))
		}
		nearest = nearest && !isKeyed
	}
	return false
}

func indentOf(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}

// cutBehindKey cuts a line behind the first colon from col on.
func cutBehindKey(text string, col int) string {
	runes := []rune(text)
	for i := max(col-1, 0); i < len(runes); i++ {
		if runes[i] != ':' {
			continue
		}
		if strings.TrimSpace(string(runes[i+1:])) == "" {
			return text
		}
		return string(runes[:i+1]) + " ***"
	}
	return text
}
