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
	// secretive matches a key that holds or may hold a secret, also in the middle of a
	// line or misspelt at its end.
	secretive = regexp.MustCompile(`(?i)([\w.-]*(?:secret|token|passw|_key|url|dsn|credential|authorization)[\w.-]*|\bheaders)["']?\s*:`)
	// userInfo matches the beginning of an address with a user or a password in it.
	userInfo = regexp.MustCompile(`://[^\s/@]*@`)
)

// harmless holds the names of settings that look secretive and are not.
var harmless = harmlessNames()

func harmlessNames() map[string]bool {
	names := make(map[string]bool)
	for _, f := range fieldsOf(Default()) {
		leaf := f.key[strings.LastIndexByte(f.key, '.')+1:]
		if !f.isSecret() && secretive.MatchString(leaf+":") {
			names[leaf] = true
		}
	}
	return names
}

// secretAt returns where the value of the first secretive key on a line
// begins, or -1.
func secretAt(text string) int {
	for _, m := range secretive.FindAllStringSubmatchIndex(text, -1) {
		if !harmless[text[m[2]:m[3]]] {
			return m[1]
		}
	}
	if m := userInfo.FindStringIndex(text); m != nil {
		return m[0] + len("://")
	}
	return -1
}

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

// excerpt returns a line with a caret below col, with possible secrets as ***. With
// keyOnly everything after the key at col is cut, because the value of an unknown key may
// be a secret whose key was misspelt.
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

// masked returns a line without possible secrets: the text after a secretive key, and the
// whole line if it continues one.
func (s source) masked(line int) string {
	text := s.lines[line-1]
	if at := secretAt(text); at >= 0 {
		if strings.TrimSpace(text[at:]) == "" {
			return text
		}
		return text[:at] + " ***"
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
		if (parent || nearest && isKeyed) && secretAt(above) >= 0 {
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

// cutBehindKey cuts a line after the first colon from col on.
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
