// Package diff says where two JSON values differ.
package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Member is a part of a value that differs.
type Member struct {
	Path   string `json:"path" doc:"such as proxy.listen_path; empty is the whole object"`
	Before any    `json:"before,omitempty" doc:"absent: was not there"`
	After  any    `json:"after,omitempty" doc:"absent: is no longer there"`

	Names []string `json:"-"` // the path's members, from the whole object on
}

// JSON compares two values part by part; nil is an absent one. Arrays are
// compared as a whole: positions say little about what moved.
func JSON(before, after []byte) ([]Member, error) {
	b, err := decodeAny(before)
	if err != nil {
		return nil, err
	}
	a, err := decodeAny(after)
	if err != nil {
		return nil, err
	}
	changes := []Member{}
	compare(nil, b, a, &changes)
	return changes, nil
}

func decodeAny(text []byte) (value any, err error) {
	if text == nil {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // large numbers stay exact
	err = dec.Decode(&value)
	return value, err
}

func compare(names []string, before, after any, changes *[]Member) {
	was, isObject := before.(map[string]any)
	is, stillObject := after.(map[string]any)
	if !isObject || !stillObject {
		if !same(before, after) {
			*changes = append(*changes, Member{Path: pathOf(names), Before: before, After: after, Names: slices.Clone(names)})
		}
		return
	}
	members := maps.Clone(was)
	maps.Copy(members, is)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		compare(append(names, name), was[name], is[name], changes)
	}
}

// same compares by canonical text: encoding orders the members of objects.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// pathOf is the path of a member by the names that lead to it.
func pathOf(names []string) (path string) {
	for _, name := range names {
		path = member(path, name)
	}
	return path
}

// member is the path of a member; names that would be misread are quoted.
func member(path, name string) string {
	for _, r := range name {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return fmt.Sprintf("%s[%q]", path, name)
		}
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
