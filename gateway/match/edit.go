package match

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/frozen"
)

// Edit builds a tree from another one. It is used by one goroutine, up to Done.
//
// It copies the nodes on the paths to its changes, each once; the trees share all
// others.
type Edit[T any] struct {
	anywhere    *node[T]
	domains     *frozen.Edit[*node[T]]
	expressions *frozen.Edit[restriction]
	len         int

	// own are the nodes that are not the original's, with what makes their fixed
	// children: nil while those are as they were.
	own map[*node[T]]*frozen.Edit[*node[T]]
}

// Edit returns an edit of t, which does not change. The nil tree is empty.
func (t *Tree[T]) Edit() *Edit[T] {
	if t == nil {
		t = &Tree[T]{anywhere: newNode[T]()}
	}
	return &Edit[T]{
		anywhere: t.anywhere, domains: t.domains.Edit(), expressions: t.expressions.Edit(), len: t.len,
		own: make(map[*node[T]]*frozen.Edit[*node[T]]),
	}
}

// Done returns the new tree and ends the edit. step is
// called between small pieces of work and may wait; Done returns its error.
func (e *Edit[T]) Done(step func() error) (*Tree[T], error) {
	for n, fixed := range e.own {
		if fixed == nil {
			continue
		}
		made, err := fixed.DoneBySteps(step)
		if err != nil {
			return nil, err
		}
		n.fixed = made
	}
	domains, err := e.domains.DoneBySteps(step)
	if err != nil {
		return nil, err
	}
	return &Tree[T]{anywhere: e.anywhere, domains: domains, expressions: e.expressions.Done(), len: e.len}, nil
}

// Add adds an entry. The error is a [*TakenError] when another entry has its listen
// path; any other error begins with the name of the wrong member.
func (e *Edit[T]) Add(entry Entry[T]) error { return e.put(entry, false) }

// Set adds an entry, or replaces the one with its listen path.
func (e *Edit[T]) Set(entry Entry[T]) error { return e.put(entry, true) }

func (e *Edit[T]) put(entry Entry[T], instead bool) error {
	segments, err := parseListenPath(entry.ListenPath)
	if err != nil {
		return fmt.Errorf("listen path %q: %w", entry.ListenPath, err)
	}
	domain, err := normalDomain(entry.Domain)
	if err != nil {
		return fmt.Errorf("domain %q: %w", entry.Domain, err)
	}
	holder := e.lookup(domain, segments)
	if holder != nil && !instead {
		return &TakenError[T]{ListenPath: entry.ListenPath, Holder: holder.value}
	}
	if holder == nil {
		if err := e.use(segments); err != nil {
			return fmt.Errorf("listen path %q: %w", entry.ListenPath, err)
		}
		e.len++
	}
	e.enter(e.root(domain), segments, newRoute(entry.Value, segments))
	return nil
}

// Remove removes the entry with a listen path, if there is one.
func (e *Edit[T]) Remove(domain, listenPath string) {
	segments, err := parseListenPath(listenPath)
	if err != nil {
		return // it never got in
	}
	domain, err = normalDomain(domain)
	if err != nil || e.lookup(domain, segments) == nil {
		return
	}
	e.len--
	e.release(segments)
	root := e.leave(e.root(domain), segments)
	switch {
	case domain == "" && root == nil:
		e.anywhere = newNode[T]()
	case domain == "":
		e.anywhere = root
	case root == nil:
		e.domains.Delete(domain)
	default:
		e.domains.Set(domain, root)
	}
}

// lookup returns the route of exactly these segments, or nil.
func (e *Edit[T]) lookup(domain string, segments []segment) *route[T] {
	n := e.anywhere
	if domain != "" {
		n, _ = e.domains.Get(domain)
	}
	for i := 0; n != nil && i < len(segments); i++ {
		n = e.child(n, &segments[i])
	}
	if n == nil || n.weight < 0 {
		return nil
	}
	return &n.route
}

// root returns the node where a domain begins, as one's own.
func (e *Edit[T]) root(domain string) *node[T] {
	if domain == "" {
		e.anywhere = e.mine(e.anywhere)
		return e.anywhere
	}
	n, _ := e.domains.Get(domain)
	n = e.mine(n)
	e.domains.Set(domain, n)
	return n
}

// mine returns a node that may be changed: n itself, a copy, or a new one for nil.
func (e *Edit[T]) mine(n *node[T]) *node[T] {
	if n == nil {
		n = newNode[T]()
	} else {
		if _, own := e.own[n]; own {
			return n
		}
		n = new(*n)
		n.patterned = slices.Clone(n.patterned)
	}
	e.own[n] = nil
	return n
}

func newNode[T any]() *node[T] { return &node[T]{weight: -1, heaviest: -1} }

// child returns the node that a segment leads to, or nil.
func (e *Edit[T]) child(n *node[T], s *segment) *node[T] {
	switch {
	case s.name == "":
		if fixed := e.own[n]; fixed != nil {
			to, _ := fixed.Get(s.text)
			return to
		}
		to, _ := n.fixed.Get(s.text)
		return to
	case s.expr == "":
		return n.free
	}
	if at, found := n.find(s.expr); found {
		return n.patterned[at].to
	}
	return nil
}

func (n *node[T]) find(expr string) (at int, found bool) {
	return slices.BinarySearchFunc(n.patterned, expr, func(p patterned[T], text string) int {
		return strings.Compare(p.text, text)
	})
}

// setChild makes a segment lead from n, which is one's own, to another node, or
// nowhere.
func (e *Edit[T]) setChild(n *node[T], s *segment, to *node[T]) {
	switch {
	case s.name == "":
		fixed := e.own[n]
		if fixed == nil {
			fixed = n.fixed.Edit()
			e.own[n] = fixed
		}
		if to == nil {
			fixed.Delete(s.text)
		} else {
			fixed.Set(s.text, to)
		}
	case s.expr == "":
		n.free = to
	default:
		at, found := n.find(s.expr)
		switch {
		case to == nil:
			n.patterned = slices.Delete(n.patterned, at, at+1)
		case found:
			n.patterned[at].to = to
		default:
			use, _ := e.expressions.Get(s.expr)
			n.patterned = slices.Insert(n.patterned, at, patterned[T]{s.expr, use.anchored, to})
		}
	}
}

// enter adds the nodes of a listen path and sets their weights: the longest path
// wins, where a parameter counts as its slash only.
func (e *Edit[T]) enter(n *node[T], segments []segment, r route[T]) {
	weight := 0
	for i := range segments {
		weight += 1 + len(segments[i].text)
	}
	n.heaviest = max(n.heaviest, weight)
	for i := range segments {
		was := e.child(n, &segments[i])
		to := e.mine(was)
		if to != was {
			e.setChild(n, &segments[i], to)
		}
		n = to
		n.heaviest = max(n.heaviest, weight)
	}
	n.route, n.weight = r, weight
}

// leave takes the route of segments out below n, which is one's own, and returns
// what stays of n, nil for nothing.
func (e *Edit[T]) leave(n *node[T], segments []segment) *node[T] {
	if len(segments) == 0 {
		n.route, n.weight = route[T]{}, -1
	} else {
		to := e.leave(e.mine(e.child(n, &segments[0])), segments[1:])
		e.setChild(n, &segments[0], to)
	}
	fixed := n.fixed.Len()
	if edit := e.own[n]; edit != nil {
		fixed = edit.Len()
	}
	if n.weight < 0 && fixed == 0 && len(n.patterned) == 0 && n.free == nil {
		return nil
	}
	if fixed <= weighed {
		e.weigh(n)
	}
	return n
}

// weighed is how many fixed children are looked at for the heaviest of them when
// one has left. With more, the node goes for heavier than it may be: that costs
// a look-up a few steps at worst.
const weighed = 64

func (e *Edit[T]) weigh(n *node[T]) {
	n.heaviest = n.weight
	all := n.fixed.All()
	if edit := e.own[n]; edit != nil {
		all = edit.All()
	}
	for _, to := range all {
		n.heaviest = max(n.heaviest, to.heaviest)
	}
	for i := range n.patterned {
		n.heaviest = max(n.heaviest, n.patterned[i].to.heaviest)
	}
	if n.free != nil {
		n.heaviest = max(n.heaviest, n.free.heaviest)
	}
}

// use makes sure of the expressions before any node is made for them.
func (e *Edit[T]) use(segments []segment) error {
	for i := range segments {
		s := &segments[i]
		if _, known := e.expressions.Get(s.expr); s.expr == "" || known {
			continue
		}
		anchored, err := compileExpression(s.expr)
		if err != nil {
			e.drop(segments[:i])
			return fmt.Errorf("parameter {%s}: %w", s.name, err)
		}
		e.expressions.Set(s.expr, restriction{anchored: anchored})
	}
	for i := range segments {
		if use, ok := e.expressions.Get(segments[i].expr); ok {
			use.uses++
			e.expressions.Set(segments[i].expr, use)
		}
	}
	return nil
}

// drop removes the expressions that are not used any more.
func (e *Edit[T]) drop(segments []segment) {
	for i := range segments {
		if use, ok := e.expressions.Get(segments[i].expr); ok && use.uses == 0 {
			e.expressions.Delete(segments[i].expr)
		}
	}
}

// release is the reverse of use.
func (e *Edit[T]) release(segments []segment) {
	for i := range segments {
		if use, ok := e.expressions.Get(segments[i].expr); ok {
			use.uses--
			e.expressions.Set(segments[i].expr, use)
		}
	}
	e.drop(segments)
}

// compileExpression makes an expression match a segment as a whole. It is tried
// as written first, so that errors quote the definition.
func compileExpression(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + text + `)\z`)
}

func newRoute[T any](value T, segments []segment) route[T] {
	r := route[T]{value: value, segments: len(segments)}
	for i := range segments {
		if segments[i].name == "" {
			continue
		}
		if r.parameters == nil {
			r.parameters = new(parameters)
		}
		r.parameters.names = append(r.parameters.names, segments[i].name)
		r.parameters.at = append(r.parameters.at, i)
	}
	return r
}
