package match

import (
	"fmt"
	"regexp"

	"github.com/sluicegate/sluice/internal/frozen"
)

// An Entry is a value with its domain and listen path.
type Entry[T any] struct {
	// Domain is the host that the entry answers for, without a port; "" for any.
	// Letters are compared without case.
	Domain string

	// ListenPath is a path prefix on segment boundaries: "/sample", with or
	// without a slash at its end, takes "/sample", "/sample/" and "/sample/x",
	// not "/samplefoo". A segment {name} takes any one segment that is not empty,
	// {name:regex} one that the expression matches as a whole.
	ListenPath string

	// Value is what Find returns.
	Value T
}

// A TakenError reports that another entry has the listen path of an entry.
type TakenError[T any] struct {
	ListenPath string
	Holder     T // the value of the entry that is there
}

// Error names the listen path.
func (e *TakenError[T]) Error() string {
	return fmt.Sprintf("listen path %q: is taken by an earlier entry", e.ListenPath)
}

// A Tree finds entries by host and path. It is immutable; [Tree.Edit] builds another
// tree from it, which shares its nodes.
type Tree[T any] struct {
	anywhere    *node[T]              // entries without a domain
	domains     *frozen.Map[*node[T]] // by normalised host
	expressions *frozen.Map[restriction]
	len         int
}

// A restriction is the expression of parameters, compiled once for all listen
// paths that hold it.
type restriction struct {
	anchored *regexp.Regexp
	uses     int
}

// A route is an entry that was accepted.
type route[T any] struct {
	value      T
	segments   int         // of its listen path
	parameters *parameters // of its listen path, or nil
}

// parameters are those of a listen path.
type parameters struct {
	names []string // from the left
	at    []int    // which segments those are
}

// A node is a common prefix of listen paths. There are about as many as APIs, so that
// it is one small object.
type node[T any] struct {
	fixed     *frozen.Map[*node[T]] // by segment text; nil: none
	patterned []patterned[T]        // parameters with an expression, in order of its text
	free      *node[T]              // a parameter that takes anything

	route    route[T] // of the listen path that ends here
	weight   int      // of that listen path; -1 when none ends here
	heaviest int      // at least the weight in this node and below it
}

type patterned[T any] struct {
	text  string
	match *regexp.Regexp
	to    *node[T]
}

// Len returns the number of entries.
func (t *Tree[T]) Len() int {
	if t == nil {
		return 0
	}
	return t.len
}
