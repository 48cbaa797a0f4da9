package syntax

import (
	"bytes"
	"unicode/utf8"
)

// tokenKind is what a token is.
type tokenKind uint8

// The kinds of tokens. nothing is the current token after an error: no rule
// wants it.
const (
	nothing tokenKind = iota
	endOfFile
	bang
	dollar
	ampersand
	parenL
	parenR
	spread
	colon
	equals
	at
	bracketL
	bracketR
	braceL
	pipe
	braceR
	name
	integer
	float
	text
	blockText
)

// kindNames are the kinds as messages have them.
var kindNames = [...]string{
	nothing: "nothing", endOfFile: "<EOF>", bang: `"!"`, dollar: `"$"`, ampersand: `"&"`, parenL: `"("`, parenR: `")"`,
	spread: `"..."`, colon: `":"`, equals: `"="`, at: `"@"`, bracketL: `"["`, bracketR: `"]"`, braceL: `"{"`, pipe: `"|"`,
	braceR: `"}"`, name: "Name", integer: "Int", float: "Float", text: "String", blockText: "BlockString",
}

// A token is a lexical token: Source[start:end].
type token struct {
	kind       tokenKind
	start, end uint32
}

// What a byte may begin, beside the punctuators that are one byte long.
const (
	_ uint8 = iota // nothing
	ignored
	nameStart // letters and "_"
	digit
	other // needs a look at what follows
	single
)

// charClass is the class of each byte in its upper half, and for punctuators the
// kind of token in its lower.
type charClass [256]struct {
	class uint8
	kind  tokenKind
}

var chars = classify()

func classify() (c charClass) {
	for _, b := range " \t\n\r," {
		c[b].class = ignored
	}
	for b := 'a'; b <= 'z'; b++ {
		c[b].class, c[b-'a'+'A'].class = nameStart, nameStart
	}
	c['_'].class = nameStart
	for b := '0'; b <= '9'; b++ {
		c[b].class = digit
	}
	for _, b := range []byte{'-', '.', '#', '"', bomStart} {
		c[b].class = other
	}
	for b, kind := range map[byte]tokenKind{
		'!': bang, '$': dollar, '&': ampersand, '(': parenL, ')': parenR, ':': colon, '=': equals, '@': at,
		'[': bracketL, ']': bracketR, '{': braceL, '|': pipe, '}': braceR,
	} {
		c[b].class, c[b].kind = single, kind
	}
	return c
}

// bom is a byte order mark, which is white space wherever it stands.
const (
	bom      = "\ufeff"
	bomStart = '\xef'
)

// next moves on to the next token. It counts it, and notes an error for what is
// no token or one too many.
func (p *parser) next() {
	if p.err != nil {
		return
	}
	src := p.src
	i := int(p.tok.end)
	for i < len(src) {
		c := chars[src[i]]
		switch c.class {
		case ignored:
			i++
			continue
		case single:
			p.put(c.kind, i, i+1)
		case nameStart:
			p.put(name, i, endOfName(src, i+1))
		case digit:
			p.number(i)
		case other:
			if after := endOfIgnored(src, i); after > i {
				i = after
				continue
			}
			p.long(i)
		default:
			p.unexpectedCharacter(i)
		}
		return
	}
	p.tok = token{endOfFile, uint32(len(src)), uint32(len(src))}
}

// put makes Source[start:end] the current token.
func (p *parser) put(kind tokenKind, start, end int) {
	p.tok = token{kind, uint32(start), uint32(end)}
	p.doc.Tokens++
	if p.doc.Tokens > p.lim.Tokens {
		p.exceeded("tokens", p.lim.Tokens)
	}
}

// endOfName returns the end of the name whose first byte is before i.
func endOfName(src []byte, i int) int {
	for i < len(src) {
		if c := chars[src[i]].class; c != nameStart && c != digit {
			break
		}
		i++
	}
	return i
}

// endOfIgnored returns the end of the comment or byte order mark at i, or i.
func endOfIgnored(src []byte, i int) int {
	switch src[i] {
	case '#':
		for i < len(src) && src[i] != '\n' && src[i] != '\r' {
			i++
		}
	case bomStart:
		if bytes.HasPrefix(src[i:], []byte(bom)) {
			i += len(bom)
		}
	}
	return i
}

// long reads a token that its first byte does not identify.
func (p *parser) long(i int) {
	src := p.src
	switch {
	case src[i] == '"' && hasTripleQuote(src, i):
		p.blockString(i)
	case src[i] == '"':
		p.string(i)
	case src[i] == '-':
		p.number(i)
	case src[i] == '.' && i+2 < len(src) && src[i+1] == '.' && src[i+2] == '.':
		p.put(spread, i, i+3)
	default:
		p.unexpectedCharacter(i)
	}
}

func hasTripleQuote(src []byte, i int) bool {
	return i+2 < len(src) && src[i] == '"' && src[i+1] == '"' && src[i+2] == '"'
}

func (p *parser) unexpectedCharacter(i int) {
	if p.src[i] == '\'' {
		p.fail(i, `Unexpected single quote character ('), did you mean to use a double quote (")?`)
		return
	}
	p.fail(i, "Unexpected character: "+p.printed(i)+".")
}

// number reads an Int or a Float.
func (p *parser) number(start int) {
	src, i := p.src, start
	if src[i] == '-' {
		i++
	}
	if p.byteAt(i) == '0' {
		i++
		if isDigit(p.byteAt(i)) {
			p.fail(i, "Invalid number, unexpected digit after 0: "+p.printed(i)+".")
			return
		}
	} else if i = p.digits(i); i < 0 {
		return
	}
	kind := integer
	if p.byteAt(i) == '.' {
		kind = float
		if i = p.digits(i + 1); i < 0 {
			return
		}
	}
	if c := p.byteAt(i); c == 'e' || c == 'E' {
		kind = float
		i++
		if c := p.byteAt(i); c == '+' || c == '-' {
			i++
		}
		if i = p.digits(i); i < 0 {
			return
		}
	}
	if c := p.byteAt(i); c == '.' || chars[c].class == nameStart {
		p.fail(i, "Invalid number, expected digit but got: "+p.printed(i)+".")
		return
	}
	p.put(kind, start, i)
}

// digits returns the end of the digits at i, or -1 when there are none.
func (p *parser) digits(i int) int {
	if !isDigit(p.byteAt(i)) {
		p.fail(i, "Invalid number, expected digit but got: "+p.printed(i)+".")
		return -1
	}
	for isDigit(p.byteAt(i)) {
		i++
	}
	return i
}

// byteAt returns the byte at i, 0 behind the end: no rule expects a zero byte.
func (p *parser) byteAt(i int) byte {
	if i < len(p.src) {
		return p.src[i]
	}
	return 0
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// string reads a string of one line.
func (p *parser) string(start int) {
	src, i := p.src, start+1
	for i < len(src) {
		switch src[i] {
		case '"':
			p.put(text, start, i+1)
			return
		case '\n', '\r':
			p.fail(i, "Unterminated string.")
			return
		case '\\':
			_, size, ok := readEscape(src, i)
			if !ok {
				p.fail(i, escapeFault(src, i, size))
				return
			}
			i += size
		default:
			i++
		}
	}
	p.fail(i, "Unterminated string.")
}

// blockString reads a block string. A quote is escaped, three at a time, by the
// byte before it alone: two backslashes are no escape of each other here.
func (p *parser) blockString(start int) {
	src, i := p.src, start+3
	for {
		q := bytes.IndexByte(src[i:], '"')
		if q < 0 {
			p.fail(len(src), "Unterminated string.")
			return
		}
		i += q
		switch {
		case !hasTripleQuote(src, i):
			i++
		case src[i-1] == '\\':
			i += 3
		default:
			p.put(blockText, start, i+3)
			return
		}
	}
}

// firstInvalid returns where src stops being UTF-8, or -1.
func firstInvalid(src []byte) int {
	if utf8.Valid(src) {
		return -1
	}
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
