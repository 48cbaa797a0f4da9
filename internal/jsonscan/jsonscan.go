// Package jsonscan reads JSON in place: it walks objects and arrays, hands out
// the bytes of names and values, and checks all that it passes over. It neither
// allocates nor recurses.
//
// Grammar: RFC 8259, UTF-8 only. A name or string with half of a surrogate pair
// is well-formed by that grammar; Unescape is what refuses it.
package jsonscan

// MaxDepth is the deepest nesting that a Scanner can be told to allow.
const MaxDepth = 512

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. Invalid is no value at all.
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

// A Value is a value as it stands in the text.
type Value struct {
	Kind   Kind
	Raw    []byte // the value without white space around it, quotes and brackets included
	Offset int    // of Raw in the text, in bytes
}

// Text returns what stands between the quotes of a string, escapes and all.
func (v Value) Text() []byte { return v.Raw[1 : len(v.Raw)-1] }

// A Scanner walks one text. Walking an object is
//
//	for s.Object(); s.Member(); { use s.Name(); s.Value() }
//
// where s.Value() may be another such loop. After the first fault every method
// answers as at the end of everything, and Err tells the fault.
type Scanner struct {
	src   []byte
	at    int
	depth int // objects and arrays that are open
	limit int
	begun bool // the innermost open one has had an element
	name  []byte
	fault Error
}

// New returns a scanner of src that allows depth objects and arrays to be open
// at once, at most MaxDepth. It keeps src and does not change it.
func New(src []byte, depth int) Scanner {
	return Scanner{src: src, limit: min(depth, MaxDepth)}
}

// Offset returns the place of the scanner in the text, in bytes.
func (s *Scanner) Offset() int { return s.at }

// Err returns the first fault, an *Error, or nil.
func (s *Scanner) Err() error {
	if fault, ok := s.Fault(); ok {
		return &fault
	}
	return nil
}

// Fault returns the first fault, and whether there is one. Unlike Err it does not
// allocate.
func (s *Scanner) Fault() (Error, bool) { return s.fault, s.fault.Expected != "" }

// Kind returns the kind of the value that comes next, Invalid when none does. It
// looks at the first byte only: Value can still find a fault.
func (s *Scanner) Kind() Kind {
	s.space()
	if s.at == len(s.src) {
		return Invalid
	}
	return kinds[s.src[s.at]]
}

// Object goes into the object that comes next. It returns false, with a fault,
// when something else comes.
func (s *Scanner) Object() bool { return s.enter('{', "an object") }

// Array goes into the array that comes next. It returns false, with a fault,
// when something else comes.
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

// Member goes to the value of the next member of the object, whose name is Name
// from then on. It returns false after the last, having left the object. The
// value has to be passed, by Value, Object or Array, before the next call.
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

// Name returns what stands between the quotes of the member's name, escapes and
// all. Equal compares it.
func (s *Scanner) Name() []byte { return s.name }

// Element goes to the next element of the array. It returns false after the
// last, having left the array. The element has to be passed before the next call.
func (s *Scanner) Element() bool { return s.next(']', `"," or "]"`) }

// next passes the comma before an element, if there is one more, and leaves the
// object or array else.
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

// Value passes the value that comes next with all that is in it and returns it.
// Its kind is Invalid when there is a fault.
func (s *Scanner) Value() Value {
	kind := s.Kind()
	start := s.at
	if !s.pass(kind) {
		return Value{}
	}
	s.begun = true
	return Value{Kind: kind, Raw: s.src[start:s.at], Offset: start}
}

// End tells whether nothing but white space follows. What else follows is a
// fault.
func (s *Scanner) End() bool {
	s.space()
	if s.at < len(s.src) {
		return s.fail(s.at, "the end of the text")
	}
	return s.fault.Expected == ""
}

// fail notes a fault unless there is one, and leaves nothing to scan. It returns
// false.
func (s *Scanner) fail(at int, expected string) bool {
	if s.fault.Expected == "" {
		s.fault = Error{Offset: at, Expected: expected, End: at == len(s.src)}
	}
	s.at = len(s.src)
	return false
}
