package version

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A kind is the list that a rule stands in.
type kind uint8

const (
	ignored kind = iota
	black
	white
)

// A rule is an entry of a list.
type rule struct {
	definition.PathMatch
	at    string // where it is in the definition
	kind  kind
	order int    // among all entries
	reply *reply // nil: none
}

// lists are the lists of one version that decide whether calls pass: ignored,
// black and white, in this order; the first entry that takes a call decides.
type lists struct {
	rules *match.Endpoints[*rule]
	black *match.Endpoints[*rule] // of refusals alone; nil: there are none
	only  bool                    // there is a white list: what no entry takes is refused
	keys  bool                    // calls need a key, but those that are ignored
}

// newLists compiles the lists of a version, nil when there are none.
func newLists(def *definition.API, v *definition.Version, o Options) (*lists, error) {
	said := v.PathRules()
	if !said.Decides() {
		return nil, nil
	}
	l := &lists{only: len(said.White) > 0, keys: !def.UseKeyless}
	opts := match.PatternOptions{IgnoreCase: v.IgnoreEndpointCase, Unanchored: o.Unanchored}
	var all, refused []match.Endpoint[*rule]
	for _, list := range []struct {
		kind  kind
		rules []definition.PathRule
	}{{ignored, said.Ignored}, {black, said.Black}, {white, said.White}} {
		for _, r := range list.rules {
			one := endpoint(r.PathMatch, opts, &rule{PathMatch: r.PathMatch, at: r.At, kind: list.kind, order: len(all), reply: newReply(r.Reply)})
			all = append(all, one)
			if list.kind == black && r.Reply == nil {
				refused = append(refused, one)
			}
		}
	}
	var err error
	if l.rules, err = compile(all); err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		l.black, err = compile(refused)
	}
	return l, err
}

// endpoint makes an entry of a list for the calls that it is about.
func endpoint[T any](c definition.PathMatch, opts match.PatternOptions, value T) match.Endpoint[T] {
	opts.IgnoreCase = opts.IgnoreCase || c.IgnoreCase
	return match.Endpoint[T]{Path: c.Path, Method: c.Method, Options: opts, Value: value}
}

func compile[T any](list []match.Endpoint[T]) (*match.Endpoints[T], error) {
	compiled, err := match.CompileEndpoints(list)
	if err != nil {
		return nil, fmt.Errorf("list of paths: %w", err)
	}
	return compiled, nil
}

// handle passes a call on, lifts authentication for it, answers it, or refuses it.
// leads says that the path begins with the name of the version.
func (l *lists) handle(ex *pipeline.Exchange, leads bool) pipeline.Verdict {
	r, pass := l.decide(ex, leads)
	switch {
	case !pass:
		return ex.Reject(forbidden)
	case r != nil && r.reply != nil:
		return r.reply.answer(ex)
	}
	ex.Open = ex.Open || r != nil && r.kind == ignored && l.keys // perhaps for a preflight already
	return pipeline.Next
}

// decide returns the rule that takes a call, nil when there is none, and whether
// the call passes.
func (l *lists) decide(ex *pipeline.Exchange, leads bool) (r *rule, pass bool) {
	r = find(l.rules, ex.Call.Method, ex.Path, ex.PathBuf, leads)
	if r == nil || r.kind == white {
		if refusing := l.hidden(ex, leads); refusing != nil {
			return refusing, false
		}
	}
	if r == nil {
		return nil, !l.only
	}
	return r, r.kind != black || r.reply != nil
}

// find returns the first rule that takes a call, to a path with or without the
// listen path, or the name of the version that it begins with.
func find(rules *match.Endpoints[*rule], method, path, full []byte, leads bool) *rule {
	r, found := rules.Find(method, path, full)
	if !leads {
		return r
	}
	other, also := rules.Find(method, match.Rest(path, 1), nil)
	if also && (!found || other.order < r.order) {
		return other
	}
	return r
}

// hidden returns the rule that would refuse the call if its path were read as the
// least careful of upstreams reads it.
func (l *lists) hidden(ex *pipeline.Exchange, leads bool) *rule {
	full := ex.PathBuf
	if l.black == nil || match.IsPlain(full) {
		return nil
	}
	ex.Buf = match.AppendPlain(ex.Buf[:0], full)
	end := len(ex.Buf)
	ex.Buf = match.AppendPlain(ex.Buf, ex.Path)
	return find(l.black, ex.Call.Method, ex.Buf[end:], ex.Buf[:end], leads)
}
