package graphql

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/rights"
)

// Explain reports the shape of the operations, the rules of the key and the API
// that apply, and where in the document a rule is violated.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	w, ok := ex.Held.(*work)
	if !ok || ex.Outgoing.Root && f.Stage == "graphql" {
		f.Said = "the call stands for a stored operation, which was judged before"
		return
	}
	for _, operation := range ex.Operations {
		if f.Said != "" {
			f.Said += "; "
		}
		f.Said += s.describe(operation)
	}
	mine := accessOf(ex, s.api)
	if n := len(ex.Operations); n > 0 {
		s.explainRules(f, ex.Operations[n-1], mine)
	}
	if f.Verdict == pipeline.Rejected {
		s.explainRefusal(ex, f, w, mine)
	}
}

// describe summarises an operation.
func (s *Stage) describe(o *validate.Facts) string {
	name := o.Kind.String()
	if o.Name != "" {
		name += " " + o.Name
	}
	return fmt.Sprintf("%s, depth %d, %d root fields", name, s.rules.DepthBase+int(o.Depth), o.RootFields)
}

// accessOf returns the rights of an exchange's key, nil without a key.
func accessOf(ex *pipeline.Exchange, api string) *rights.Access {
	if ex.Session == nil {
		return nil
	}
	all, err := rights.Effective(ex.Session, ex.Policies)
	if err != nil {
		return nil
	}
	mine, _ := all.For(api)
	return mine
}

// A limitRule is a limit on operations.
type limitRule struct {
	kind  rules.Kind
	field string // of policies, keys and access entries
	own   string // of the API's graphql.limits
	key   int64
	from  string // the source of key
	api   int64
	found int64
}

// limitRules lists the limits on an operation.
func (s *Stage) limitRules(o *validate.Facts, mine *rights.Access) []limitRule {
	if mine == nil {
		mine = &rights.Access{}
	}
	l, base := &s.rules.Limits, int64(s.rules.DepthBase)
	of := func(kind rules.Kind, field string, v rights.Value[int], api, found int) limitRule {
		return limitRule{kind, "max_query_" + field, "graphql.limits.max_" + field, int64(v.Value), v.From.String(), int64(api), int64(found)}
	}
	return []limitRule{
		of(rules.Depth, "depth", mine.Depth, l.Depth, int(base)+int(o.Depth)),
		of(rules.Aliases, "aliases", mine.Aliases, l.Aliases, o.Aliases),
		of(rules.RootFields, "root_fields", mine.RootFields, l.RootFields, o.RootFields),
		of(rules.Directives, "directives", mine.Directives, l.Directives, o.Directives),
		of(rules.Tokens, "tokens", mine.Tokens, l.Tokens, o.Tokens),
		{rules.CostTooHigh, "max_query_cost", "graphql.limits.max_cost", mine.Cost.Value, mine.Cost.From.String(), l.Cost, -1},
	}
}

// explainRules adds the limits that are set, and the lists of fields.
func (s *Stage) explainRules(f *pipeline.Finding, o *validate.Facts, mine *rights.Access) {
	for _, r := range s.limitRules(o, mine) {
		seen := ""
		if r.found >= 0 {
			seen = strconv.FormatInt(r.found, 10)
		}
		if r.key > 0 {
			f.Fact(r.field, strconv.FormatInt(r.key, 10), seen, r.from)
		}
		if r.api > 0 {
			f.Fact(r.own, strconv.FormatInt(r.api, 10), seen, "the definition")
		}
	}
	if mine == nil {
		return
	}
	for _, e := range mine.FieldAccess {
		rule := "field_access_rights " + e.Value.TypeName + "." + e.Value.FieldName
		f.Fact(rule, fmt.Sprintf("max_query_depth %d", e.Value.Limits.MaxQueryDepth), "", e.From.String())
	}
	lists := func(rule string, types []rights.Item[definition.TypeFields]) {
		for _, e := range types {
			f.Fact(rule+" "+e.Value.Name, strings.Join(e.Value.Fields, ", "), "", originText(e.From))
		}
	}
	lists("allowed_types", mine.AllowedTypes)
	lists("restricted_types", mine.RestrictedTypes)
}

func originText(all []rights.Origin) string {
	texts := make([]string, len(all))
	for i, o := range all {
		texts[i] = o.String()
	}
	return strings.Join(texts, ", ")
}

// explainRefusal reports the rule that the last operation violates, and where.
func (s *Stage) explainRefusal(ex *pipeline.Exchange, f *pipeline.Finding, w *work, mine *rights.Access) {
	f.Said = ex.Rejection.Message
	switch ex.Rejection.Reason {
	case pipeline.ReasonRateLimit:
		f.Said, f.Fix = "the rate of the key is used up, before the operation was looked at", "wait, or raise the rate"
	case pipeline.ReasonGraphQLInvalid, pipeline.ReasonGraphQLTooLarge:
		errorFacts(f, ex.Rejection)
		f.Fix = "correct the operation"
	case pipeline.ReasonUntrustedDocument:
		f.Fix = "store the document in graphql.trusted_documents, or let the key run others (trusted_documents_only)"
	case pipeline.ReasonDepthLimit, pipeline.ReasonOperationLimit, pipeline.ReasonFieldRestricted, pipeline.ReasonIntrospectionDisabled:
		if n := len(ex.Operations); n > 0 {
			s.explainVerdict(ex, f, w, mine)
		}
	}
}

// errorFacts adds the errors of a GraphQL answer with their places.
func errorFacts(f *pipeline.Finding, r *pipeline.Rejection) {
	var answer struct {
		Errors []struct {
			Message   string            `json:"message"`
			Locations []syntax.Location `json:"locations"`
		} `json:"errors"`
	}
	if !r.GraphQL() || json.Unmarshal(r.JSON(), &answer) != nil {
		return
	}
	for _, e := range answer.Errors {
		f.Fact("error", e.Message, placeText(e.Locations...), "the schema")
	}
	if len(answer.Errors) > 0 && len(answer.Errors[0].Locations) > 0 {
		f.Said += " (at " + placeText(answer.Errors[0].Locations...) + ")"
	}
}

// explainVerdict evaluates the rules for the operation again and reports the result.
func (s *Stage) explainVerdict(ex *pipeline.Exchange, f *pipeline.Finding, w *work, mine *rights.Access) {
	may, refused := s.rulesFor(ex)
	if refused != nil {
		return
	}
	o := ex.Operations[len(ex.Operations)-1]
	v := may.Check(o, o.Cost.At(w.sizes[:min(len(o.Variables), len(w.sizes))]))
	places := s.findPlaces(w.judged.Query, w.judged.Operation, v.Field)
	switch v.Kind {
	case rules.Introspection:
		f.Fix = "let the key introspect (disable_introspection), or the API (graphql.introspection)"
	case rules.Restricted, rules.AllRestricted:
		s.explainField(f, v.Field, places, mine)
	case rules.None:
	default:
		s.explainLimit(f, v, places, s.limitRules(o, mine))
	}
}

// explainField reports the list that contains a field, and where it is selected.
func (s *Stage) explainField(f *pipeline.Finding, id schema.FieldID, places *finder, mine *rights.Access) {
	field := &s.schema.Fields[id]
	name := s.schema.Types[field.Owner].Name + "." + field.Name
	if len(places.places) > 0 {
		f.Said += " (at " + placeText(places.places...) + ")"
	}
	rule, fix, from := "restricted_types", "take "+name+" off restricted_types", ""
	if mine == nil {
		return
	}
	list := mine.RestrictedTypes
	if len(mine.AllowedTypes) > 0 {
		rule, fix, list = "allowed_types", "add "+name+" to allowed_types", mine.AllowedTypes
	}
	at := slices.IndexFunc(list, func(e rights.Item[definition.TypeFields]) bool {
		return e.Value.Name == s.schema.Types[field.Owner].Name
	})
	switch {
	case at >= 0:
		from = originText(list[at].From)
	case len(list) > 0:
		from = originText(list[0].From)
	}
	f.Facts = slices.Insert(f.Facts, 0, pipeline.Fact{Rule: rule, Value: name, Seen: placeText(places.places...), From: from})
	f.Fix = fix + " of " + from
}

// explainLimit reports the limit that an operation exceeds, by how much and where.
func (s *Stage) explainLimit(f *pipeline.Finding, v rules.Verdict, places *finder, all []limitRule) {
	at := slices.IndexFunc(all, func(r limitRule) bool { return r.kind == v.Kind })
	if at < 0 {
		return
	}
	r := all[at]
	rule, from, of := r.field, r.from, r.from
	switch {
	case v.Field != schema.NoField:
		field := &s.schema.Fields[v.Field]
		rule = "field_access_rights " + s.schema.Types[field.Owner].Name + "." + field.Name
		from, of = "", "the field"
		for _, fact := range f.Facts {
			if fact.Rule == rule {
				from = fact.From
			}
		}
	case r.key <= 0 || r.key != v.Max && r.api == v.Max:
		rule, from, of = r.own, "the definition", "the definition"
	}
	seen := strconv.FormatInt(v.Found, 10)
	if v.Kind == rules.Depth && places.level > 0 {
		seen += " at " + placeText(places.doc.Location(places.deepest))
	}
	fact := pipeline.Fact{Rule: rule, Value: strconv.FormatInt(v.Max, 10), Seen: seen, From: from}
	f.Facts = slices.DeleteFunc(f.Facts, func(other pipeline.Fact) bool { return other.Rule == rule })
	f.Facts = slices.Insert(f.Facts, 0, fact)
	f.Said = fmt.Sprintf("%s: %s > %s", f.Said, seen, fact.Value)
	f.Fix = fmt.Sprintf("raise %s of %s, or ask for less", rule, of)
}
