// Package diff says where two JSON values differ.
package diff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Member is a part of a value that differs.
type Member struct {
	// Path of the member, such as proxy.listen_path; empty is the whole object.
	Path string `json:"path"`
	// Value before the change; left out: the member was not there.
	Before any `json:"before,omitempty"`
	// Value after the change; left out: the member is no longer there.
	After any `json:"after,omitempty"`

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

// Names returns the names that a path consists of, as Member.Path has them; elements of arrays
// are named by their index: versions[0].name.
func Names(path string) ([]string, error) {
	var names []string
	for rest := path; rest != ""; {
		var name string
		var err error
		if name, rest, err = cutName(rest, len(names) == 0); err != nil {
			return nil, err
		}
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("%.40q is not the name of a member", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// cutName cuts the first name off a path.
func cutName(path string, first bool) (name, rest string, err error) {
	switch {
	case strings.HasPrefix(path, `["`):
		quoted, err := strconv.QuotedPrefix(path[1:])
		if err == nil {
			name, err = strconv.Unquote(quoted)
		}
		after, closed := strings.CutPrefix(path[1+len(quoted):], "]")
		if err != nil || !closed {
			return "", "", fmt.Errorf(`%.40q must begin with a name in quotes and brackets, such as ["a b"]`, path)
		}
		return name, after, nil
	case strings.HasPrefix(path, "["):
		index, after, closed := strings.Cut(path[1:], "]")
		if _, err := strconv.ParseUint(index, 10, 31); err != nil || !closed {
			return "", "", fmt.Errorf("%.40q must begin with an index in brackets, such as [0]", path)
		}
		return index, after, nil
	}
	if !first {
		if path, first = strings.CutPrefix(path, "."); !first {
			return "", "", fmt.Errorf("a dot is missing before %.40q", path)
		}
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if end == 0 {
		return "", "", errors.New("a name is missing: names are separated by one dot each")
	}
	return path[:end], path[end:], nil
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
