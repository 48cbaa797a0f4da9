// Package object reads and writes structs as JSON objects so that nothing of an
// object is lost: not the members that a struct lacks, nor which were written
// although they are empty. What is wrong with an object is told all at once,
// each with its path.
package object

import (
	"encoding/json"
	"fmt"
)

// MaxFaults is how many faults of one object are worth telling: enough to fix it
// in one go, and a bound for input that is wrong throughout.
const MaxFaults = 100

// A Fault is something in an object that cannot be read.
type Fault struct {
	Path    string // such as proxy.listen_path; "" is the whole object
	Message string // what is wrong and what would be right
}

// Member writes the path of a member, "parent.member".
func Member(parent, member string) string {
	if parent == "" {
		return member
	}
	return parent + "." + member
}

// Entry writes the path of an element by name, `parent["name"]`.
func Entry(parent, name string) string { return fmt.Sprintf("%s[%q]", parent, name) }

// Item writes the path of an element by position, "parent[2]".
func Item(parent string, i int) string { return fmt.Sprintf("%s[%d]", parent, i) }

// Unknown holds what a JSON object said beyond the fields of its struct: the
// members that this release does not know, as they were written but for white
// space, and which of the known ones were written although they are empty. So
// an object that is read and written back says the same. The zero value holds
// nothing.
type Unknown struct {
	members map[string]json.RawMessage
	empty   uint64 // bit i: the i-th member of the struct's layout was written, and was empty
}

// Get returns an unknown member, or nil. The caller must not change it.
func (u *Unknown) Get(name string) json.RawMessage { return u.members[name] }

// Len returns the number of unknown members.
func (u *Unknown) Len() int { return len(u.members) }

func (u *Unknown) set(name string, raw json.RawMessage) {
	if u.members == nil {
		u.members = make(map[string]json.RawMessage)
	}
	u.members[name] = raw
}
