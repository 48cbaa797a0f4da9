package match

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Entry is a value and where it listens.
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

// An EntryError says why an entry of a tree was left out.
type EntryError struct {
	Entry int   // its index among the entries given to New
	First int   // the index of the earlier entry that listens at the same place, or -1
	Err   error // what is wrong, beginning with the field's name
}

// Error describes the problem, without the entry's index.
func (e *EntryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// A Tree finds entries by host and path. It never changes.
type Tree[T any] struct {
	anywhere *node            // entries without a domain
	domains  map[string]*node // by normalised host; nil when no entry has one
	routes   []route[T]
}

// A route is an entry that was accepted.
type route[T any] struct {
	value    T
	segments int      // of its listen path
	names    []string // of its parameters, from the left
	at       []int    // which segments those are
}

// A node stands for the listen paths that begin alike.
type node struct {
	fixed     map[string]*node // by segment text
	patterned []patterned      // parameters with an expression, in order of its text
	free      *node            // a parameter that takes anything

	route    int // of the listen path that ends here, or -1
	weight   int // of that listen path
	heaviest int // weight in this node and below it
}

type patterned struct {
	text  string
	match *regexp.Regexp
	to    *node
}

// New builds a tree. Entries that are malformed, and those that listen where an
// earlier one does, are left out and reported; the others are all in the tree.
func New[T any](entries []Entry[T]) (*Tree[T], []*EntryError) {
	b := builder[T]{
		tree:        &Tree[T]{anywhere: newNode(), routes: make([]route[T], 0, len(entries))},
		entries:     make([]int, 0, len(entries)),
		expressions: make(map[string]*regexp.Regexp),
	}
	var problems []*EntryError
	for i, e := range entries {
		first, err := b.add(i, e)
		if err != nil {
			problems = append(problems, &EntryError{Entry: i, First: first, Err: err})
		}
	}
	b.tree.anywhere.finish()
	for _, root := range b.tree.domains {
		root.finish()
	}
	return b.tree, problems
}

// A builder holds what is needed only while a tree is made.
type builder[T any] struct {
	tree        *Tree[T]
	entries     []int                     // by route: the index of its entry
	expressions map[string]*regexp.Regexp // so that equal ones share one program
}

func (b *builder[T]) add(index int, e Entry[T]) (first int, err error) {
	segments, err := parseListenPath(e.ListenPath)
	if err != nil {
		return -1, fmt.Errorf("listen path %q: %w", e.ListenPath, err)
	}
	domain, err := normalDomain(e.Domain)
	if err != nil {
		return -1, fmt.Errorf("domain %q: %w", e.Domain, err)
	}
	if err := b.compile(segments); err != nil {
		return -1, fmt.Errorf("listen path %q: %w", e.ListenPath, err)
	}
	end, weight := b.walk(b.root(domain), segments)
	if end.route >= 0 {
		return b.entries[end.route], fmt.Errorf("listen path %q: is taken by an earlier entry", e.ListenPath)
	}
	end.route, end.weight = len(b.tree.routes), weight
	b.tree.routes = append(b.tree.routes, newRoute(e.Value, segments))
	b.entries = append(b.entries, index)
	return -1, nil
}

// compile makes sure of the expressions before any node is made for them.
func (b *builder[T]) compile(segments []segment) error {
	for _, s := range segments {
		if s.expr == "" || b.expressions[s.expr] != nil {
			continue
		}
		if _, err := regexp.Compile(s.expr); err != nil {
			return fmt.Errorf("parameter {%s}: %w", s.name, err)
		}
		anchored, err := regexp.Compile(`\A(?:` + s.expr + `)\z`)
		if err != nil {
			return fmt.Errorf("parameter {%s}: %w", s.name, err)
		}
		b.expressions[s.expr] = anchored
	}
	return nil
}

func (b *builder[T]) root(domain string) *node {
	if domain == "" {
		return b.tree.anywhere
	}
	if b.tree.domains == nil {
		b.tree.domains = make(map[string]*node)
	}
	root := b.tree.domains[domain]
	if root == nil {
		root = newNode()
		b.tree.domains[domain] = root
	}
	return root
}

// walk makes the way to the node of a listen path, and weighs it: the longest
// path wins, where a parameter counts as its slash only.
func (b *builder[T]) walk(n *node, segments []segment) (end *node, weight int) {
	for _, s := range segments {
		weight += 1 + len(s.text)
		switch {
		case s.name == "":
			n = n.toFixed(s.text)
		case s.expr == "":
			n = n.toFree()
		default:
			n = n.toPatterned(s.expr, b.expressions[s.expr])
		}
	}
	return n, weight
}

func newRoute[T any](value T, segments []segment) route[T] {
	r := route[T]{value: value, segments: len(segments)}
	for i, s := range segments {
		if s.name != "" {
			r.names = append(r.names, s.name)
			r.at = append(r.at, i)
		}
	}
	return r
}

func newNode() *node { return &node{route: -1, weight: -1} }

func (n *node) toFixed(text string) *node {
	if to := n.fixed[text]; to != nil {
		return to
	}
	if n.fixed == nil {
		n.fixed = make(map[string]*node, 1)
	}
	to := newNode()
	n.fixed[text] = to
	return to
}

func (n *node) toFree() *node {
	if n.free == nil {
		n.free = newNode()
	}
	return n.free
}

func (n *node) toPatterned(text string, match *regexp.Regexp) *node {
	at, found := slices.BinarySearchFunc(n.patterned, text, func(p patterned, text string) int {
		return strings.Compare(p.text, text)
	})
	if !found {
		n.patterned = slices.Insert(n.patterned, at, patterned{text, match, newNode()})
	}
	return n.patterned[at].to
}

// finish fills in the heaviest weights, from the leaves up.
func (n *node) finish() int {
	n.heaviest = n.weight
	for _, to := range n.fixed {
		n.heaviest = max(n.heaviest, to.finish())
	}
	for _, p := range n.patterned {
		n.heaviest = max(n.heaviest, p.to.finish())
	}
	if n.free != nil {
		n.heaviest = max(n.heaviest, n.free.finish())
	}
	return n.heaviest
}
