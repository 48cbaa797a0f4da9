package vars

import "github.com/sluicegate/sluice/gateway/pipeline"

// A Part is where in a URL a text goes.
type Part uint8

// The parts.
const (
	Path Part = iota
	Query
)

// AppendURL appends the text as a part of a URL. Its fixed text is taken as it is
// written; what variables stand for is percent-encoded but for letters, digits
// and "-._~", so that no value ends the part or says more than one value. Only
// $svc_context.path, which is a path, keeps its slashes within one.
func (t *Template) AppendURL(dst []byte, ex *pipeline.Exchange, part Part) []byte {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.value == nil {
			dst = append(dst, p.text...)
			continue
		}
		start := len(ex.Buf)
		ex.Buf = p.value.append(ex.Buf, ex, nil)
		_, whole := p.value.(fullPathValue)
		dst = appendEncoded(dst, ex.Buf[start:], whole && part == Path)
		ex.Buf = ex.Buf[:start]
	}
	return dst
}

const upperHex = "0123456789ABCDEF"

func appendEncoded(dst, text []byte, slashes bool) []byte {
	for i := range text {
		switch c := text[i]; {
		case c|0x20-'a' < 26, c-'0' < 10, c == '-', c == '.', c == '_', c == '~', slashes && c == '/':
			dst = append(dst, c)
		case slashes && c == '%':
			dst = append(dst, c) // the path's own escape
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}
