// Package object reads and writes structs as JSON objects without losing anything:
// members that the struct lacks are kept, and so is which members were written
// although they are empty. All faults of an object are reported at once, each with
// its path.
//
// Members have the tags of encoding/json, where "omitempty" and "omitzero" mean the
// same, and ",inline" on a pointer writes the members of its struct in place of the
// field. The tag object:"short" marks the member that a string stands for in place of
// the object; object:"lenient" keeps a value of another type as an unknown member, for
// members that are not always in use.
package object

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// MaxFaults is how many faults of one object are reported: enough to fix it in one
// go, and a bound for input that is wrong throughout.
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

// Unknown holds what a JSON object said beyond the fields of its struct: the members
// that this release does not know, without white space, and which of the known ones
// were written although they are empty. An object that is read and written back says
// the same. The zero value holds nothing.
type Unknown struct {
	members map[string]json.RawMessage
	empty   uint64 // bit i: the i-th member of the struct's layout was written, and was empty
}

// shortForm is the bit of Unknown.empty of an object that was written as a string.
const shortForm = 1 << 63

// Get returns an unknown member, or nil. The caller must not change it.
func (u *Unknown) Get(name string) json.RawMessage { return u.members[name] }

// Names returns the names of the unknown members in order.
func (u *Unknown) Names() []string { return SortedKeys(u.members) }

// Short reports whether the object was written as a string, which stands for its
// member with the tag object:"short".
func (u *Unknown) Short() bool { return u.empty&shortForm != 0 }

// LenientFaults returns what is wrong with a lenient member of the type of into, with
// paths below the member: nil if it could be read.
func (u *Unknown) LenientFaults(name string, into any) []Fault {
	if raw := u.Get(name); raw != nil {
		return Decode(raw, into)
	}
	return nil
}

// Len returns the number of unknown members.
func (u *Unknown) Len() int { return len(u.members) }

func (u *Unknown) set(name string, raw json.RawMessage) {
	if u.members == nil {
		u.members = make(map[string]json.RawMessage)
	}
	u.members[name] = raw
}

// WroteEmpty reports whether the object that from points to was read with a member that
// was empty, such as false. The member has the option omitempty.
func WroteEmpty(from any, member string) bool {
	v := reflect.ValueOf(from).Elem()
	l := layoutOf(v.Type())
	i, ok := l.byName[member]
	return ok && l.unknown >= 0 && v.Field(l.unknown).Interface().(Unknown).empty&(1<<i) != 0
}
