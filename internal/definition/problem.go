package definition

import (
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// maxProblems is how many problems of one object are reported.
const maxProblems = object.MaxFaults

// Problem is one thing that is wrong with an object.
type Problem struct {
	Path    string `json:"path"`              // JSON path such as proxy.listen_path; "" is the whole object
	Message string `json:"message"`           // what is wrong and what would be right
	Feature string `json:"feature,omitempty"` // name of the feature that this release does not have
	Weight  Weight `json:"-"`                 // of the feature
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

// Texts returns the problems behind their paths.
func (p Problems) Texts() []string {
	texts := make([]string, 0, len(p))
	for _, one := range p {
		texts = append(texts, one.String())
	}
	return texts
}

// addf adds a problem, up to maxProblems.
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

// asProblems turns what could not be read into *Problems, nil when there is
// nothing.
func asProblems(faults ...object.Fault) error {
	var p Problems
	for _, f := range faults {
		p.add(Problem{Path: f.Path, Message: f.Message})
	}
	return p.err()
}
