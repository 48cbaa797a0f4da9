package syntax

import (
	"fmt"
	"math"
)

// Bounds that apply regardless of Limits: a stack overflow ends the process, and
// spans have 32 bits.
const (
	maxBytes = math.MaxInt32
	maxDepth = 1000 // of selection sets, and of values and types
)

// Parse parses src into doc, replaces its content and reuses its slices. It accepts
// the whole grammar; the validator refuses type definitions. doc aliases src, which
// must not change while doc is in use.
//
// The error is an *Error that begins "Syntax Error: ", with its one location, or
// a *LimitError; of doc, Source and Location are usable then.
func Parse(doc *Document, src []byte, lim Limits) error {
	p := parser{doc: doc, src: src, lim: lim.effective()}
	return p.parse()
}

// ParseSchema is Parse for a schema. Operations and fragments in it are parsed
// too, and for the caller to refuse, as are types with nothing between their
// braces.
func ParseSchema(doc *Document, src []byte, lim Limits) error {
	p := parser{doc: doc, src: src, lim: lim.effective(), emptyBodies: true}
	return p.parse()
}

func (p *parser) parse() error {
	doc, src := p.doc, p.src
	doc.reset(src)
	if len(src) > p.lim.Bytes {
		p.exceeded("bytes", p.lim.Bytes)
	} else if i := firstInvalid(src); i >= 0 {
		p.fail(i, fmt.Sprintf("Invalid UTF-8: byte 0x%02X.", src[i]))
	}
	p.next()
	for p.err == nil {
		p.definition()
		if p.tok.kind == endOfFile {
			break
		}
	}
	return p.err
}

// effective returns the limits with defaults for those that are not set.
func (l Limits) effective() Limits {
	for _, limit := range []*int{&l.Tokens, &l.Aliases, &l.Directives, &l.Literals, &l.Fragments, &l.Operations} {
		if *limit <= 0 {
			*limit = math.MaxInt
		}
	}
	l.Bytes = within(l.Bytes, maxBytes)
	l.Depth = within(l.Depth, maxDepth)
	l.ValueDepth = within(l.ValueDepth, maxDepth)
	return l
}

func within(limit, most int) int {
	if limit <= 0 || limit > most {
		return most
	}
	return limit
}

// reset empties the document and keeps its slices.
func (d *Document) reset(src []byte) {
	d.Source, d.Tokens = src, 0
	d.Definitions, d.Operations, d.Fragments = d.Definitions[:0], d.Operations[:0], d.Fragments[:0]
	d.Variables, d.Selections, d.Arguments = d.Variables[:0], d.Selections[:0], d.Arguments[:0]
	d.Directives, d.Values, d.Types = d.Directives[:0], d.Values[:0], d.Types[:0]
	d.TypeDefs, d.FieldDefs, d.InputDefs = d.TypeDefs[:0], d.FieldDefs[:0], d.InputDefs[:0]
	d.EnumValues, d.RootTypes, d.Names = d.EnumValues[:0], d.RootTypes[:0], d.Names[:0]
	d.selections, d.arguments, d.values = d.selections[:0], d.arguments[:0], d.values[:0]
}

// parser reads one document by recursive descent, bounded by its limits. The
// first error ends it: there are no more tokens then, so that rules need not
// look at it, but loops do.
type parser struct {
	doc *Document
	src []byte
	tok token // the current one
	err error
	lim Limits // with a maximum everywhere

	depth, valueDepth int // of what is open
	aliases, literals int
	emptyBodies       bool // are accepted
}

// fail notes the first error.
func (p *parser) fail(at int, message string) {
	if p.err == nil {
		p.err = &Error{Message: "Syntax Error: " + message, Locations: []Location{p.doc.Location(uint32(at))}}
	}
	p.tok.kind = nothing
}

func (p *parser) exceeded(what string, limit int) {
	if p.err == nil {
		p.err = &LimitError{What: what, Max: limit}
	}
	p.tok.kind = nothing
}

// unexpected notes that no rule wants a token.
func (p *parser) unexpected(t token) {
	if p.err == nil {
		p.fail(int(t.start), "Unexpected "+p.described(t)+".")
	}
}

// expected notes that a rule wants something else than the current token.
func (p *parser) expected(what string) {
	if p.err == nil {
		p.fail(int(p.tok.start), "Expected "+what+", found "+p.described(p.tok)+".")
	}
}

// take moves on if the current token is of a kind.
func (p *parser) take(kind tokenKind) bool {
	if p.tok.kind != kind {
		return false
	}
	p.next()
	return true
}

// want moves on from a token of a kind.
func (p *parser) want(kind tokenKind) {
	if !p.take(kind) {
		p.expected(kindNames[kind])
	}
}

// is reports whether the current token is a keyword.
func (p *parser) is(keyword string) bool {
	return p.tok.kind == name && string(p.src[p.tok.start:p.tok.end]) == keyword
}

func (p *parser) takeKeyword(keyword string) bool {
	if !p.is(keyword) {
		return false
	}
	p.next()
	return true
}

func (p *parser) wantKeyword(keyword string) {
	if !p.takeKeyword(keyword) {
		p.expected(`"` + keyword + `"`)
	}
}

// description reads a description if there is one: its index in Values, or None.
func (p *parser) description() uint32 {
	t := p.tok
	if t.kind != text && t.kind != blockText {
		return None
	}
	p.next()
	return p.keep(stringValue(t))
}

// here is where the current token starts. It is a call because operands that are
// calls are evaluated in order, and a field may be moved on before it is read.
func (p *parser) here() uint32 { return p.tok.start }

// name reads a name.
func (p *parser) name() Span {
	t := p.tok
	if t.kind != name {
		p.expected(kindNames[name])
		return Span{}
	}
	p.next()
	return Span{t.start, t.end}
}
