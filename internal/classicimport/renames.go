package classicimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Renames map name prefixes of another gateway to those of this one: $old_context becomes
// $new_context, x-old-... becomes x-new-..., in any case.
type Renames map[string]string

// Check validates a mapping.
func (r Renames) Check() error {
	for old, replacement := range r {
		for _, name := range []string{old, replacement} {
			if name == "" || strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
				return fmt.Errorf("--rename %s=%s: both must be small letters and digits, such as acme=svc", old, replacement)
			}
		}
	}
	return nil
}

// apply rewrites names and texts in a tree and returns their number.
func (r Renames) apply(tree map[string]any) (n int) {
	if len(r) == 0 {
		return 0
	}
	for _, name := range slices.Collect(maps.Keys(tree)) { // the loop changes the map
		value, changed := r.value(tree[name])
		n += changed
		renamed := r.text(name)
		if renamed != name {
			n++
			delete(tree, name)
		}
		tree[renamed] = value
	}
	return n
}

func (r Renames) value(value any) (any, int) {
	switch v := value.(type) {
	case string:
		if text := r.text(v); text != v {
			return text, 1
		}
	case map[string]any:
		return v, r.apply(v)
	case []any:
		n := 0
		for i := range v {
			item, changed := r.value(v[i])
			v[i], n = item, n+changed
		}
		return v, n
	}
	return value, 0
}

func (r Renames) text(text string) string {
	for old, replacement := range r {
		for _, kind := range []string{"context", "meta"} {
			text = strings.ReplaceAll(text, "$"+old+"_"+kind, "$"+replacement+"_"+kind)
		}
		if prefix := "x-" + old + "-"; len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
			changed := "x-" + replacement + "-"
			if text[0] == 'X' {
				changed = "X-" + strings.ToUpper(replacement[:1]) + replacement[1:] + "-"
			}
			text = changed + text[len(prefix):]
		}
	}
	return text
}
