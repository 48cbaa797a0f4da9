package graphql

import (
	"runtime"
	"sync"
	"weak"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/graphql/values"
	"github.com/sluicegate/sluice/internal/rights"
)

var noAccess = pipeline.NewRejection(pipeline.ReasonAccessDenied, 403, "Access to this API has been disallowed")

// rulesFor returns the compiled rules of a request's key. They are compiled for the
// first operation under its grant.
func (s *Stage) rulesFor(ex *pipeline.Exchange) (*pipeline.OperationRules, *pipeline.Rejection) {
	grant := ex.Grant
	if grant == nil {
		return s.open, nil
	}
	if may := grant.Operations.Load(); may != nil {
		return may, nil
	}
	mine := s.accessOf(ex)
	if mine == nil {
		return nil, noAccess
	}
	may := s.rulesOf(mine)
	if trial := trialOf(grant); trial != nil {
		may = s.tried(may, mine, trial)
	}
	grant.Operations.Store(may)
	return may, nil
}

// accessOf returns the rights of a request's key, nil if it has none.
func (s *Stage) accessOf(ex *pipeline.Exchange) *rights.Access {
	all, err := rights.Effective(ex.Session, ex.Policies)
	if err != nil {
		return nil // the access stage has reported it
	}
	if mine, ok := all.For(s.api); ok {
		return mine
	}
	if special := ex.Grant.Special; special != nil && special.Unlisted {
		return all.Unlisted(s.api)
	}
	return nil
}

// trialOf returns the report-only policies of a key, nil if it has none.
func trialOf(grant *pipeline.Grant) *pipeline.ReportOnlyPolicies {
	if special := grant.Special; special != nil && (special.ReportOnly.Access != "" || special.ReportOnly.Complexity != "") {
		return &special.ReportOnly
	}
	return nil
}

// rulesOf returns the compiled rules of rights, nil for calls without a key. Equal
// rights share their rules.
func (s *Stage) rulesOf(mine *rights.Access) *pipeline.OperationRules {
	id := digest(rules.Digest(mine, s.rules))
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	if shared := s.tables[id].Value(); shared != nil {
		return shared
	}
	may := &pipeline.OperationRules{
		Table:  rules.Compile(s.schema, mine, s.rules),
		Hidden: mine != nil && (s.rules.HidesSchema || mine.DisableIntrospection.Value),
	}
	s.tables[id] = weak.Make(may)
	runtime.AddCleanup(may, s.model.forget, id)
	if len(may.Unknown) > 0 && len(s.told) < maxTables && !s.told[id] {
		s.told[id] = true
		s.opts.Log.Warn("field lists name what the schema does not have, which is without effect", "api", s.api, "names", may.Unknown)
	}
	return may
}

// maxTables bounds how many sets of rules are reported in the log.
const maxTables = 100

// forget removes collected rules, unless they have been compiled again.
func (m *model) forget(id digest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables[id].Value() == nil {
		delete(m.tables, id)
	}
}

// hold evaluates the rules for an operation with its variables.
func (s *Stage) hold(ex *pipeline.Exchange, w *work, f *validate.Facts, variables []byte, may *pipeline.OperationRules) *pipeline.Rejection {
	n := len(f.Variables)
	if cap(w.sizes) < n {
		w.sizes = make([]int64, n)
	}
	sizes := w.sizes[:n]
	if errs := w.checker.Check(s.schema, f.Variables, variables, sizes, values.Options{Hidden: may.Hidden}); len(errs) > 0 {
		r := s.invalid(pipeline.ReasonGraphQLInvalid, errs...)
		return r.of(w.head.Media)
	}
	v := may.Check(f, f.Cost.At(sizes))
	if v.Kind != rules.None && may.Enforced != nil {
		spare(ex, may, v)
		may = may.Enforced
		v = may.Check(f, f.Cost.At(sizes))
	}
	if v.Kind == rules.None {
		return nil
	}
	return s.restrictions.refusal(may, v)
}

// Judge evaluates the access rights of an exchange's key for an operation with its
// variables. It is for operations that do not come as GraphQL requests. f must
// belong to the Stage's schema.
func (s *Stage) Judge(ex *pipeline.Exchange, f *validate.Facts, variables []byte) pipeline.Verdict {
	w := begin(ex)
	may, refused := s.rulesFor(ex)
	if refused == nil {
		w.note(ex, f)
		refused = s.hold(ex, w, f, variables, may)
	}
	if refused != nil {
		return s.refuse(ex, refused)
	}
	return pipeline.Next
}

// limitReasons are the refusals that depend on the verdict's kind only.
var limitReasons = [...]pipeline.Reason{
	rules.Depth:         pipeline.ReasonDepthLimit,
	rules.Introspection: pipeline.ReasonIntrospectionDisabled,
	rules.Aliases:       pipeline.ReasonOperationLimit,
	rules.RootFields:    pipeline.ReasonOperationLimit,
	rules.Directives:    pipeline.ReasonOperationLimit,
	rules.Tokens:        pipeline.ReasonOperationLimit,
	rules.CostTooHigh:   pipeline.ReasonOperationLimit,
}

// restrictions holds the refusals of a schema: at most two for each field, and those
// that name no field.
type restrictions struct {
	mu    sync.RWMutex
	known map[restriction]*pipeline.Rejection
}

type restriction struct {
	kind  rules.Kind
	field uint32 // of those that name one
}

// refusal returns the refusal for a verdict. It is built on first use.
func (r *restrictions) refusal(may *pipeline.OperationRules, v rules.Verdict) *pipeline.Rejection {
	named := v.Kind == rules.Restricted || v.Kind == rules.AllRestricted
	key := restriction{kind: v.Kind}
	if named {
		key.field = uint32(v.Field)
	}
	r.mu.RLock()
	known := r.known[key]
	r.mu.RUnlock()
	if known != nil {
		return known
	}
	text := may.Message(v)
	if named {
		known = pipeline.NewGraphQLRejection(pipeline.ReasonFieldRestricted, 400, text, request.Body(&syntax.Error{Message: text}))
	} else {
		known = pipeline.NewRejection(limitReasons[v.Kind], 403, text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = make(map[restriction]*pipeline.Rejection)
	}
	r.known[key] = known
	return known
}
