package jsonscan

import (
	"encoding/binary"
	"unicode/utf8"
)

// kinds are the kinds of values by their first byte.
var kinds = [256]Kind{
	'n': Null, 'f': False, 't': True, '"': String, '[': Array, '{': Object, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

func (s *Scanner) space() {
	for s.at < len(s.src) {
		switch s.src[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// pass skips the value of a kind that starts here.
func (s *Scanner) pass(kind Kind) bool {
	switch kind {
	case String:
		return s.str("a string")
	case Number:
		return s.number()
	case Null:
		return s.word("null")
	case True:
		return s.word("true")
	case False:
		return s.word("false")
	case Array, Object:
		return s.nested(kind)
	default:
		return s.fail(s.at, "a value")
	}
}

// nested skips an object or array with its content. A bit for each open one records
// whether it is an object.
func (s *Scanner) nested(kind Kind) bool {
	var objects [MaxDepth / 64]uint64
	outside := s.depth
	for {
		switch kind {
		case Object, Array:
			bit := uint64(1) << (s.depth & 63)
			if kind == Object && s.Object() {
				objects[(s.depth-1)>>6] |= bit
			} else if kind == Array && s.Array() {
				objects[(s.depth-1)>>6] &^= bit
			}
		default:
			s.pass(kind)
		}
		if !s.ahead(&objects, outside) {
			return s.fault.Expected == ""
		}
		kind = s.Kind()
	}
}

// ahead advances to the next value of the innermost open element and closes those
// that end. It returns false once no more than outside are open.
func (s *Scanner) ahead(objects *[MaxDepth / 64]uint64, outside int) bool {
	for s.depth > outside && s.fault.Expected == "" {
		top := s.depth - 1
		if objects[top>>6]&(1<<(top&63)) != 0 {
			if s.Member() {
				return true
			}
		} else if s.Element() {
			return true
		}
	}
	return false
}

func (s *Scanner) word(word string) bool {
	end := s.at + len(word)
	if end > len(s.src) || string(s.src[s.at:end]) != word {
		return s.fail(s.at, "a value")
	}
	s.at = end
	return true
}

// number skips a number. It leaves a digit or point that cannot belong to it.
func (s *Scanner) number() bool {
	if s.src[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.src) && s.src[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.src) && s.src[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.src) && s.src[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.src) && (s.src[s.at] == '+' || s.src[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *Scanner) digits() bool {
	start := s.at
	for s.at < len(s.src) && s.src[s.at]-'0' < 10 {
		s.at++
	}
	return s.at > start || s.fail(s.at, "a digit")
}

// plain are the ASCII bytes that need no escape in a string.
var plain = func() (p [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		p[c] = c != '"' && c != '\\'
	}
	return p
}()

// str skips a string.
func (s *Scanner) str(what string) bool {
	if s.at == len(s.src) || s.src[s.at] != '"' {
		return s.fail(s.at, what)
	}
	s.at++
	for {
		s.run()
		if s.at == len(s.src) {
			return s.fail(s.at, "a closing double quote")
		}
		switch c := s.src[s.at]; {
		case c == '"':
			s.at++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		case c < 0x20:
			return s.fail(s.at, "control characters to be escaped")
		default:
			r, size := utf8.DecodeRune(s.src[s.at:])
			if r == utf8.RuneError && size == 1 {
				return s.fail(s.at, "UTF-8")
			}
			s.at += size
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// run skips bytes of a string that need no escape, eight at a time.
func (s *Scanner) run() {
	for len(s.src)-s.at >= 8 {
		x := binary.LittleEndian.Uint64(s.src[s.at:])
		quote, slash := x^ones*'"', x^ones*'\\'
		// A zero byte borrows: exact for "is there any", which suffices here.
		special := (x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash | x
		if special&highs != 0 {
			break
		}
		s.at += 8
	}
	for s.at < len(s.src) && plain[s.src[s.at]] {
		s.at++
	}
}

// escape skips an escape sequence.
func (s *Scanner) escape() bool {
	s.at++
	if s.at == len(s.src) {
		return s.fail(s.at, "an escape sequence")
	}
	switch s.src[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return true
	case 'u':
		if _, ok := hex4(s.src[s.at+1:]); !ok {
			return s.fail(s.at, "four hexadecimal digits")
		}
		s.at += 5
		return true
	default:
		return s.fail(s.at, "an escape sequence")
	}
}
