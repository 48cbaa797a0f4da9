package definition

import (
	"fmt"
	"strings"
)

// maxProblems is how many problems one object is told of: enough to fix it in
// one go, and a bound for input that is wrong throughout.
const maxProblems = 100

// Problem is one thing that is wrong with an object.
type Problem struct {
	Path    string `json:"path"`              // JSON path such as proxy.listen_path; "" is the whole object
	Message string `json:"message"`           // what is wrong and what would be right
	Feature string `json:"feature,omitempty"` // name of the feature that this release does not have
}

// Problems is every problem of one object, in the order of its members. It is
// an error that never is empty.
type Problems []Problem

// Error joins the problems on one line.
func (p *Problems) Error() string {
	lines := make([]string, len(*p))
	for i, one := range *p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "; ")
}

// String is the problem behind its path.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// addf notes a problem, as long as there is room.
func (p *Problems) addf(path, format string, args ...any) {
	p.add(Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (p *Problems) add(one Problem) {
	switch n := len(*p); {
	case n < maxProblems:
		*p = append(*p, one)
	case n == maxProblems:
		*p = append(*p, Problem{Message: "there are further problems, which are not listed"})
	}
}

// err is nil when there is no problem.
func (p *Problems) err() error {
	if len(*p) == 0 {
		return nil
	}
	return p
}

// within writes the path of a member, "parent.member".
func within(parent, member string) string {
	if parent == "" {
		return member
	}
	return parent + "." + member
}

// entry writes the path of an element by name, `parent["name"]`.
func entry(parent, name string) string { return fmt.Sprintf("%s[%q]", parent, name) }

// item writes the path of an element by position, "parent[2]".
func item(parent string, i int) string { return fmt.Sprintf("%s[%d]", parent, i) }
