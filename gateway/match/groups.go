package match

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// MaxGroups is how many groups an Expression may have.
const MaxGroups = 31

// An Expression is a regular expression that returns the matches of its groups, like
// package regexp but without allocation. It is immutable and safe for concurrent use.
type Expression struct {
	expr     *regexp.Regexp // for texts that would take too much memory
	prog     *syntax.Prog
	anchored bool // matches at the beginning of the text alone
}

// Groups are where an expression and its groups matched: the i-th group's text is
// text[from:to], and the 0th is all that matched. The zero value is ready for use.
type Groups struct {
	spans [2 * (MaxGroups + 1)]int32
	n     int
}

// Len returns how many groups there are, the 0th included.
func (g *Groups) Len() int { return g.n }

// Span returns where the i-th group matched, or ok of false when it did not, or
// does not exist.
func (g *Groups) Span(i int) (from, to int, ok bool) {
	if i >= g.n || g.spans[2*i] < 0 {
		return 0, 0, false
	}
	return int(g.spans[2*i]), int(g.spans[2*i+1]), true
}

// CompileGroups compiles an expression in the syntax of package regexp.
func CompileGroups(text string) (*Expression, error) {
	if text == "" {
		return nil, errors.New(`is empty; ".*" matches every text`)
	}
	if len(text) > pattern.MaxLength {
		return nil, fmt.Errorf("is %d bytes long; at most %d are allowed", len(text), pattern.MaxLength)
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if n := expr.NumSubexp(); n > MaxGroups {
		return nil, fmt.Errorf("has %d groups; at most %d are allowed", n, MaxGroups)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	return &Expression{expr: expr, prog: prog, anchored: prog.StartCond()&syntax.EmptyBeginText != 0}, nil
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.expr.String() }

// maxVisited bounds the memory of a search, in bits: one for each pair of a position in
// the text and a step of the expression.
const maxVisited = 1 << 20

// Find finds the first match in text and stores it in g. Without one g does not
// change.
func (e *Expression) Find(g *Groups, text []byte) bool {
	if (len(text)+1)*len(e.prog.Inst) > maxVisited {
		return e.findLarge(g, text)
	}
	s := searches.Get().(*search)
	found := s.run(e, text)
	if found {
		*g = s.groups
	}
	s.prog, s.text = nil, nil
	searches.Put(s)
	return found
}

func (e *Expression) findLarge(g *Groups, text []byte) bool {
	found := e.expr.FindSubmatchIndex(text)
	g.n = len(found) / 2
	for i, at := range found {
		g.spans[i] = int32(at)
	}
	return found != nil
}

var searches = sync.Pool{New: func() any { return new(search) }}

// A search is a backtracking search that visits each pair of a step and a position
// once, so that its time is proportional to text and program.
type search struct {
	prog    *syntax.Prog
	text    []byte
	groups  Groups // its own: a pointer to the caller's would put that on the heap
	visited []uint64
	stack   []branch
}

// A branch is a choice to return to, or, with a slot, the position of a group before
// the choice that is undone.
type branch struct {
	pc   uint32
	at   int32
	slot int32 // -1: a choice
}

func (s *search) run(e *Expression, text []byte) bool {
	s.prog, s.text = e.prog, text
	g := &s.groups
	g.n = e.expr.NumSubexp() + 1
	words := ((len(text)+1)*len(e.prog.Inst) + 63) / 64
	if cap(s.visited) < words {
		s.visited = make([]uint64, words)
	}
	s.visited = s.visited[:words]
	clear(s.visited)
	for start := 0; start <= len(text); start++ {
		for i := range 2 * g.n {
			g.spans[i] = -1
		}
		g.spans[0] = int32(start)
		if s.from(start) {
			return true
		}
		if e.anchored {
			return false
		}
	}
	return false
}

// from tries to match at one position.
func (s *search) from(start int) bool {
	s.stack = append(s.stack[:0], branch{uint32(s.prog.Start), int32(start), -1})
	for len(s.stack) > 0 {
		b := s.stack[len(s.stack)-1]
		s.stack = s.stack[:len(s.stack)-1]
		if b.slot >= 0 {
			s.groups.spans[b.slot] = b.at
			continue
		}
		if s.follow(b.pc, int(b.at)) {
			return true
		}
	}
	return false
}

// follow runs until there is a match, or no choice is left.
func (s *search) follow(pc uint32, at int) bool {
	for s.enter(pc, at) {
		i := &s.prog.Inst[pc]
		pc = i.Out
		switch i.Op {
		case syntax.InstMatch:
			s.groups.spans[1] = int32(at)
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			s.stack = append(s.stack, branch{i.Arg, int32(at), -1})
		case syntax.InstCapture:
			if slot := int32(i.Arg); slot < int32(2*s.groups.n) {
				s.stack = append(s.stack, branch{0, s.groups.spans[slot], slot})
				s.groups.spans[slot] = int32(at)
			}
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^s.around(at) != 0 {
				return false
			}
		case syntax.InstNop:
		case syntax.InstFail:
			return false
		default: // of a character
			if at == len(s.text) {
				return false
			}
			r, size := rune(s.text[at]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRune(s.text[at:])
			}
			if !i.MatchRune(r) {
				return false
			}
			at += size
		}
	}
	return false
}

// enter reports whether a position is visited for the first time.
func (s *search) enter(pc uint32, at int) bool {
	n := int(pc)*(len(s.text)+1) + at
	word, bit := n/64, uint64(1)<<(n%64)
	if s.visited[word]&bit != 0 {
		return false
	}
	s.visited[word] |= bit
	return true
}

// around returns the assertions that hold at a position.
func (s *search) around(at int) syntax.EmptyOp {
	before, behind := rune(-1), rune(-1)
	if at > 0 {
		before, _ = utf8.DecodeLastRune(s.text[:at])
	}
	if at < len(s.text) {
		behind, _ = utf8.DecodeRune(s.text[at:])
	}
	return syntax.EmptyOpContext(before, behind)
}
