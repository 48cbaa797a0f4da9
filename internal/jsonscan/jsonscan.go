// Package jsonscan parses JSON in place: it iterates over objects and arrays, returns
// the bytes of names and values, and validates all text that it skips. It neither
// allocates nor recurses.
//
// Grammar: RFC 8259, UTF-8 only. A name or string with a lone surrogate is
// well-formed by that grammar; Unescape refuses it.
package jsonscan

// MaxDepth bounds the nesting that a Scanner can allow.
const MaxDepth = 512

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. Invalid is no value.
const (
	Invalid Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

// A Value is a value in the text.
type Value struct {
	Kind   Kind
	Raw    []byte // the value without white space around it, quotes and brackets included
	Offset int    // of Raw in the text, in bytes
}

// Text returns the bytes between the quotes of a string, with escapes.
func (v Value) Text() []byte { return v.Raw[1 : len(v.Raw)-1] }

// A Scanner iterates over one text. An object is read by
//
//	for s.Object(); s.Member(); { use s.Name(); s.Value() }
//
// where s.Value() may be another such loop. After the first error every method
// returns as at the end of the text, and Err returns the error.
type Scanner struct {
	src   []byte
	at    int
	depth int // open objects and arrays
	limit int
	begun bool // the innermost open one has an element
	name  []byte
	fault Error
}

// New returns a scanner of src that allows depth objects and arrays to be open
// at once, at most MaxDepth. It keeps src and does not change it.
func New(src []byte, depth int) Scanner {
	return Scanner{src: src, limit: min(depth, MaxDepth)}
}

// Offset returns the position of the scanner, in bytes.
func (s *Scanner) Offset() int { return s.at }

// Err returns the first error, an *Error, or nil.
func (s *Scanner) Err() error {
	if fault, ok := s.Fault(); ok {
		return &fault
	}
	return nil
}

// Fault returns the first error and whether there is one. Unlike Err it does not
// allocate.
func (s *Scanner) Fault() (Error, bool) { return s.fault, s.fault.Expected != "" }

// Kind returns the kind of the next value, Invalid if there is none. It reads the
// first byte only: Value may still find an error.
func (s *Scanner) Kind() Kind {
	s.space()
	if s.at == len(s.src) {
		return Invalid
	}
	return kinds[s.src[s.at]]
}

// Object enters the next value, an object. It returns false, with an error, for
// another value.
func (s *Scanner) Object() bool { return s.enter('{', "an object") }

// Array enters the next value, an array. It returns false, with an error, for
// another value.
func (s *Scanner) Array() bool { return s.enter('[', "an array") }

func (s *Scanner) enter(open byte, what string) bool {
	s.space()
	if s.at == len(s.src) || s.src[s.at] != open {
		return s.fail(s.at, what)
	}
	if s.depth == s.limit {
		return s.fail(s.at, LessNesting)
	}
	s.at++
	s.depth++
	s.begun = false
	return true
}

// Member advances to the value of the object's next member and sets Name. After the
// last member it leaves the object and returns false. Read the value with Value,
// Object or Array before the next call.
func (s *Scanner) Member() bool {
	if !s.next('}', `"," or "}"`) {
		return false
	}
	start := s.at
	if !s.str(`a name in double quotes`) {
		return false
	}
	s.name = s.src[start+1 : s.at-1]
	s.space()
	if s.at == len(s.src) || s.src[s.at] != ':' {
		return s.fail(s.at, `":"`)
	}
	s.at++
	return true
}

// Name returns the bytes between the quotes of the member's name, with escapes. Equal
// compares it.
func (s *Scanner) Name() []byte { return s.name }

// Element advances to the next element of the array. After the last it leaves the
// array and returns false. Read the element before the next call.
func (s *Scanner) Element() bool { return s.next(']', `"," or "]"`) }

// next skips the comma before an element or, after the last, leaves the object or
// array.
func (s *Scanner) next(closing byte, expected string) bool {
	s.space()
	if s.fault.Expected != "" {
		return false
	}
	if s.at < len(s.src) && s.src[s.at] == closing {
		s.at++
		s.depth--
		s.begun = true
		return false
	}
	if s.begun {
		if s.at == len(s.src) || s.src[s.at] != ',' {
			return s.fail(s.at, expected)
		}
		s.at++
		s.space()
	}
	s.begun = true
	if s.at == len(s.src) {
		return s.fail(s.at, `a closing "`+string(rune(closing))+`"`)
	}
	return true
}

// Value returns the next value with its content. Its kind is Invalid after an error.
func (s *Scanner) Value() Value {
	kind := s.Kind()
	start := s.at
	if !s.pass(kind) {
		return Value{}
	}
	s.begun = true
	return Value{Kind: kind, Raw: s.src[start:s.at], Offset: start}
}

// End reports whether only white space follows. Other text is an error.
func (s *Scanner) End() bool {
	s.space()
	if s.at < len(s.src) {
		return s.fail(s.at, "the end of the text")
	}
	return s.fault.Expected == ""
}

// fail records an error, unless there is one, and ends the scan. It returns false.
func (s *Scanner) fail(at int, expected string) bool {
	if s.fault.Expected == "" {
		s.fault = Error{Offset: at, Expected: expected, End: at == len(s.src)}
	}
	s.at = len(s.src)
	return false
}
