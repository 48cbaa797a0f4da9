package vars

import "github.com/sluicegate/sluice/gateway/pipeline"

// A Part is the component of a URL that a text is appended to.
type Part uint8

// The parts.
const (
	Path Part = iota
	Query
)

// AppendURL appends the text as a component of a URL. Its fixed text is appended
// unchanged; values of variables are percent-encoded except for letters, digits and
// "-._~", so that no value can end the component or add another. Only
// $svc_context.path, which is a path, keeps its slashes.
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
			dst = append(dst, c) // an escape in the path itself
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}
