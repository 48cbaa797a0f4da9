package transform

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Ambiguous URLs are refused as those of clients are: a rewritten path must not leave
// the path of the target.
var badURL = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "The rewritten request path is ambiguous or malformed")

// rewrite is the stage that replaces paths and queries.
type rewrite struct {
	calls *match.Endpoints[*rule]
}

// A rule rewrites the URLs of some calls.
type rule struct {
	expr     *match.Expression
	to       *target
	triggers []trigger
	name     string
}

// CompileRewrite returns the stage that rewrites the URLs of a version, which may be
// nil, or nil when it has no rules.
func CompileRewrite(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	rewrites := version.Rewrites()
	if len(rewrites) == 0 {
		return nil, nil
	}
	opts := vars.Options{Context: def.EnableContextVars}
	list := make([]match.Endpoint[*rule], len(rewrites))
	for i := range rewrites {
		one, err := newRule(&rewrites[i], opts)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", object.Item("extended_paths.url_rewrites", i), err)
		}
		list[i] = endpoint(rewrites[i].PathMatch, version.IgnoreEndpointCase, one)
	}
	numberAlternates(rewrites, list)
	calls, err := match.CompileEndpoints(list)
	if err != nil {
		return nil, fmt.Errorf("extended_paths.url_rewrites%w", err)
	}
	return rewrite{calls}, nil
}

func newRule(said *definition.RewriteRule, opts vars.Options) (r *rule, err error) {
	r = &rule{name: nameOf(said.PathMatch)}
	if r.expr, err = match.CompileGroups(said.Match); err != nil {
		return nil, fmt.Errorf("match_pattern: %w", err)
	}
	if r.to, err = newTarget(said.To, opts); err != nil {
		return nil, err
	}
	for i := range said.Triggers {
		t, err := newTrigger(i, &said.Triggers[i], opts)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", object.Item("triggers", i), err)
		}
		r.triggers = append(r.triggers, t)
	}
	return r, nil
}

// Handle implements pipeline.Stage. A URL that does not match the expression of its
// rule is kept.
func (s rewrite) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	r, ok := s.calls.Find(ex.Call.Method, ex.Path, ex.PathBuf)
	if !ok {
		return pipeline.Next
	}
	var url subject
	if !r.matches(&url, ex) {
		return pipeline.Next
	}
	to, _ := r.choose(ex)
	w := written{path: ex.Outgoing.Path[:0], query: ex.Outgoing.Query[:0]}
	to.appendTo(&w, &url, ex)
	out := &ex.Outgoing
	out.Path, out.HasPath, out.Alternate = w.path, true, to.alternate
	if to.hasQuery || url.matchedQuery() { // else the client's query is kept
		out.Query, out.HasQuery = w.query, true
	}
	decoded, err := match.Decode(ex.Buf[:0], w.path)
	ex.Buf = decoded[:0]
	if err != nil {
		return ex.Reject(badURL)
	}
	return pipeline.Next
}

// matches reports whether the URL of a call matches the rule's expression, without the
// listen path or else with it. url aliases ex.Buf.
func (r *rule) matches(url *subject, ex *pipeline.Exchange) bool {
	query := ex.Call.Query
	if ex.Outgoing.HasQuery {
		query = ex.Outgoing.Query
	}
	for _, path := range [...][]byte{ex.Rest, ex.Call.Path} {
		ex.Buf = append(ex.Buf[:0], path...)
		url.mark = len(ex.Buf)
		if len(query) > 0 {
			ex.Buf = append(append(ex.Buf, '?'), query...)
		}
		url.text = ex.Buf
		if r.expr.Find(&url.groups, url.text) {
			return true
		}
	}
	return false
}

// choose returns the target of a call, and the index of its trigger, -1 for none.
func (r *rule) choose(ex *pipeline.Exchange) (to *target, by int) {
	for i := range r.triggers {
		if r.triggers[i].meets(ex) {
			return r.triggers[i].to, i
		}
	}
	return r.to, -1
}

// Explain implements pipeline.Explainer.
func (s rewrite) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	r, ok := s.calls.Find(ex.Call.Method, ex.Path, ex.PathBuf)
	if !ok {
		f.Said = "no rule is for this call"
		return
	}
	out := &ex.Outgoing
	f.Fact("url_rewrites of "+r.name, r.expr.String(), string(ex.Rest), "definition")
	if !out.HasPath {
		f.Said = "the expression does not match, so that the URL stays as it is"
		return
	}
	to, by := r.choose(ex)
	rule := "rewrite_to"
	if by >= 0 {
		rule = object.Item("triggers", by) + ".rewrite_to"
	}
	f.Fact(rule, to.written, "", "definition")
	f.Said = "the path becomes " + string(out.Path)
	if origin, _ := definition.SplitRewrite(to.written); origin != "" {
		f.Said = "the URL becomes " + origin + string(out.Path)
	}
	if out.HasQuery {
		f.Said += " with the query " + string(out.Query)
	}
	if f.Verdict == pipeline.Rejected {
		f.Fix = "what the expression or a variable puts into the path must not be a dot segment nor hold characters that need an escape"
	}
}
