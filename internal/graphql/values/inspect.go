package values

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/jsonscan"
)

const (
	maxEcho    = 200     // bytes of a client's value that a text holds
	maxInspect = 4 << 10 // bytes of the value that are looked at for that
	maxItems   = 10      // elements of a list that are shown
	maxLevels  = 2       // lists and objects that are shown open
	ellipsis   = "..."
)

// inspect returns a value as texts show it: the value that src begins with.
func inspect(src []byte) string {
	cut := src[:min(len(src), maxInspect)]
	in := inspector{scan: jsonscan.New(cut, jsonscan.MaxDepth)}
	in.value(0)
	if in.scan.Err() != nil && len(in.out) <= maxEcho {
		return string(in.out) + ellipsis
	}
	return clip(in.out)
}

// clip returns a text of at most maxEcho bytes, and an ellipsis when it is
// longer.
func clip(text []byte) string {
	if len(text) <= maxEcho {
		return string(text)
	}
	end := maxEcho
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return string(text[:end]) + ellipsis
}

// An inspector writes a value the way JavaScript shows it.
type inspector struct {
	scan jsonscan.Scanner
	out  []byte
}

// enough reports whether the text is longer than the message will show.
func (in *inspector) enough() bool { return len(in.out) > maxEcho }

func (in *inspector) add(text string) { in.out = append(in.out, text...) }

func (in *inspector) value(level int) {
	switch in.scan.Kind() {
	case jsonscan.Object:
		in.object(level)
	case jsonscan.Array:
		in.array(level)
	case jsonscan.String:
		in.out = appendString(in.out, in.scan.Value())
	case jsonscan.Number:
		in.out = appendNumber(in.out, in.scan.Value().Raw)
	default:
		in.out = append(in.out, in.scan.Value().Raw...)
	}
}

func (in *inspector) object(level int) {
	n := 0
	for in.scan.Object(); in.scan.Member(); n++ {
		switch {
		case level == maxLevels:
			in.scan.Value()
			continue
		case in.enough():
			return
		case n == 0:
			in.add("{ ")
		default:
			in.add(", ")
		}
		in.add(decodedText(in.scan.Name()))
		in.add(": ")
		in.value(level + 1)
	}
	switch {
	case in.scan.Err() != nil:
	case n == 0:
		in.add("{}")
	case level == maxLevels:
		in.add("[Object]")
	default:
		in.add(" }")
	}
}

func (in *inspector) array(level int) {
	n := 0
	for in.scan.Array(); in.scan.Element(); n++ {
		if level == maxLevels || n >= maxItems {
			in.scan.Value()
			continue
		}
		if in.enough() {
			return
		}
		if n == 0 {
			in.add("[")
		} else {
			in.add(", ")
		}
		in.value(level + 1)
	}
	if in.scan.Err() == nil {
		in.closeArray(level, n)
	}
}

// closeArray ends a list that has n elements.
func (in *inspector) closeArray(level, n int) {
	switch left := n - maxItems; {
	case n == 0:
		in.add("[]")
	case level == maxLevels:
		in.add("[Array]")
	case left == 1:
		in.add(", ... 1 more item]")
	case left > 1:
		in.add(", ... " + strconv.Itoa(left) + " more items]")
	default:
		in.add("]")
	}
}

// appendString appends a string in quotes, with no escapes but those that it
// needs.
func appendString(dst []byte, v jsonscan.Value) []byte {
	if v.Kind == jsonscan.Invalid {
		return dst
	}
	text, err := jsonscan.Unescape(nil, v.Text())
	if err != nil {
		return append(dst, v.Raw...)
	}
	return jsonscan.AppendString(dst, text)
}

// appendNumber appends a number with the fewest digits that identify it.
func appendNumber(dst, raw []byte) []byte {
	if raw == nil {
		return dst // cut off
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	switch size := math.Abs(f); {
	case err != nil && raw[0] == '-':
		return append(dst, "-Infinity"...)
	case err != nil:
		return append(dst, "Infinity"...)
	case f == 0:
		return append(dst, '0')
	case size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); n-from > 2 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst = append(dst[:n-2], dst[n-1]) // two digits are the least that Go gives an exponent
	}
	return dst
}
