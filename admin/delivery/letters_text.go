package delivery

import (
	"slices"
	"strings"
)

// fillPlaceholders replaces placeholders by values. Values are not searched again: text of
// a developer is never a placeholder.
func fillPlaceholders(text string, values map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "{{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, behind, closed := strings.Cut(after, "}}")
		if !closed {
			b.WriteString("{{" + after)
			return b.String()
		}
		b.WriteString(values[strings.TrimSpace(name)])
		text = behind
	}
}

// hasPlaceholder reports whether a text has one of the placeholders.
func hasPlaceholder(text string, names ...string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "{{")
		if !found {
			return false
		}
		name, behind, _ := strings.Cut(after, "}}")
		if slices.Contains(names, strings.TrimSpace(name)) {
			return true
		}
		rest = behind
	}
}

// shownOnce stands above a credential, which cannot be shown again.
const shownOnce = "Keep this in a safe place. It is not stored anywhere, and cannot be shown again."
