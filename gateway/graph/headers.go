package graph

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
)

// A header is a header of requests to a source.
type header struct {
	name   string // canonical
	pieces []headerPiece
}

// A headerPiece is a part of the value of a header: text with $svc_ variables, or a
// variable.
type headerPiece struct {
	text *vars.Template // nil: piece is a variable
	datagraph.Piece
}

// compileHeaders compiles the headers of a source: its own, those of all sources, and those
// with the credential of the client, the first taking precedence.
func compileHeaders(api *definition.API, own, all []datagraph.Named) ([]header, error) {
	var out []header
	taken := make(map[string]bool)
	for _, list := range [][]datagraph.Named{own, all} {
		for _, one := range list {
			h := header{name: http.CanonicalHeaderKey(one.Name)}
			if taken[h.name] {
				continue
			}
			taken[h.name] = true
			var err error
			if h.pieces, err = headerPieces(api, one.Value); err != nil {
				return nil, fmt.Errorf("header %s: %w", h.name, err)
			}
			out = append(out, h)
		}
	}
	if api.StripAuthData || api.UseKeyless {
		return out, nil
	}
	for i := range definition.AuthModes {
		m := &definition.AuthModes[i]
		if !m.On(api) {
			continue
		}
		name := http.CanonicalHeaderKey(api.Place(m.Config).Header())
		if name != "" && !taken[name] {
			taken[name] = true
			out = append(out, header{name, []headerPiece{{Piece: datagraph.Piece{Root: datagraph.Header, Text: name}}}})
		}
	}
	return out, nil
}

func headerPieces(api *definition.API, value datagraph.Template) (all []headerPiece, err error) {
	for _, p := range value {
		one := headerPiece{Piece: p}
		if p.Root == datagraph.Text {
			if one.text, err = vars.Compile(p.Text, vars.Options{Context: api.EnableContextVars}); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// headersFor returns the headers of a request. The map is the caller's own: the library
// adds to it.
func (s *source) headersFor(ex *pipeline.Exchange, v *values) http.Header {
	all := make(http.Header, len(s.headers)+4)
	all["User-Agent"] = userAgent
	for i := range s.headers {
		h := &s.headers[i]
		var b []byte
		for j := range h.pieces {
			p := &h.pieces[j]
			if p.text != nil {
				b = p.text.AppendHeader(b, ex)
				continue
			}
			b = v.appendText(b, ex, &p.Piece)
		}
		if len(b) > 0 {
			all[h.name] = append(all[h.name], withoutControls(b))
		}
	}
	return all
}

var userAgent = []string{"sluice"}

func withoutControls(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, string(b))
}
