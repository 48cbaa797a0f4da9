package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unrestorable is what is wrong with a mask that Restore cannot replace.
const Unrestorable = "holds the mask " + Masked + " of a secret, and no secret is stored here that it could stand for; write the secret itself"

// Restore returns an object as it is to be saved: where sent holds the mask of a secret,
// as JSON shows it, the secret of the stored object takes its place. stored is nil for a
// new object. Unrestorable lists the paths of the masks for which nothing is stored. Text
// that is not JSON is returned as it is.
func Restore(sent, stored []byte) (complete []byte, unrestorable []string) {
	if !HasMask(sent) {
		return sent, nil
	}
	object, err := decode(sent)
	if err != nil {
		return sent, nil
	}
	was, _ := decode(stored) // nil: nothing is stored
	shown, _ := decode(JSON(stored))
	var r restoring
	object = r.value(nil, object, shown, was)
	if complete, err = encode(object); err != nil {
		return sent, nil
	}
	return complete, r.paths
}

// HasMask reports whether a text holds the mask of a secret anywhere.
func HasMask(text []byte) bool { return bytes.Contains(text, []byte(Masked)) }

func decode(text []byte) (value any, err error) {
	if text == nil {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&value)
	return value, err
}

// restoring collects what cannot be restored.
type restoring struct{ paths []string }

// value returns the value to be saved. shown is the stored one with its secrets masked.
func (r *restoring) value(path []string, sent, shown, stored any) any {
	switch v := sent.(type) {
	case map[string]any:
		masked, _ := shown.(map[string]any)
		was, _ := stored.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = r.value(append(path, name), v[name], masked[name], was[name])
		}
	case []any:
		masked, _ := shown.([]any)
		was, _ := stored.([]any)
		at := counterparts(v, masked)
		for i := range v {
			var one, other any
			if j := at[i]; j >= 0 {
				one, other = masked[j], was[j]
			}
			v[i] = r.value(append(path, fmt.Sprintf("[%d]", i)), v[i], one, other)
		}
	case string:
		if !strings.Contains(v, Masked) {
			return v
		}
		if shown == sent {
			return stored
		}
		if isMasked(path, v) {
			r.paths = append(r.paths, pathText(path))
		}
	}
	return sent
}

// isMasked reports whether a text with the mask stands where secrets are masked.
func isMasked(path []string, text string) bool {
	names := make([]string, len(path))
	for i, name := range path {
		if names[i] = name; strings.HasPrefix(name, "[") {
			names[i] = element
		}
	}
	const probe = "https://user:secret@host.example/path?query"
	return At(names, probe) != probe || At(names, Masked+"x") != Masked+"x"
}

func pathText(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
}

// counterparts returns for each element that was sent the index of the stored element
// that it was, or -1: the one that is shown alike or, when none is missing or new, the
// one in the same place.
func counterparts(sent, shown []any) []int {
	at, places := make([]int, len(sent)), make(map[string][]int) // places of what is shown, by its text
	stays := make([]bool, min(len(sent), len(shown)))
	texts := make([]string, len(sent))
	for j := range shown {
		text := textOf(shown[j])
		if j < len(sent) {
			texts[j] = textOf(sent[j])
			stays[j] = texts[j] == text
		}
		if j >= len(sent) || !stays[j] {
			places[text] = append(places[text], j)
		}
	}
	taken := make([]bool, len(shown))
	for i := range sent {
		if at[i] = -1; i < len(stays) && stays[i] {
			at[i], taken[i] = i, true
			continue
		}
		if i >= len(shown) {
			texts[i] = textOf(sent[i])
		}
		if free := places[texts[i]]; len(free) > 0 {
			at[i], places[texts[i]] = free[0], free[1:]
			taken[free[0]] = true
		}
	}
	for i := range sent {
		if at[i] < 0 && len(sent) == len(shown) && !taken[i] {
			at[i] = i
		}
	}
	return at
}

// textOf returns a decoded value as JSON with its members in alphabetical order.
func textOf(value any) string {
	text, err := encode(value)
	if err != nil { // cannot happen: it was decoded from JSON
		return ""
	}
	return string(text)
}
