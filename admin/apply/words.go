package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Right is what callers lose or gain.
type Right struct {
	Direction string `json:"direction" enum:"lost,gained" doc:"lost: calls that pass now may be refused"`
	Policy    string `json:"policy_id,omitempty" doc:"whose keys are meant; empty: all callers of the API"`
	API       string `json:"api_id,omitempty" doc:"empty: all APIs of the policy"`
	Text      string `json:"text"`
}

// Directions of a right.
const (
	lost   = "lost"
	gained = "gained"
)

// rightsOf returns what callers lose and gain by the change of an object.
func rightsOf(d *store.Difference) ([]Right, error) {
	if d.Kind == "policy" {
		before, after := new(definition.Policy), new(definition.Policy)
		if err := readBoth(d, before, after); err != nil {
			return nil, err
		}
		w := &wording{policy: d.ID}
		if d.Before != nil { // a new policy has no keys yet
			w.policies(before, after, d.After == nil)
		}
		return w.all, nil
	}
	before, after := new(definition.API), new(definition.API)
	if err := readBoth(d, before, after); err != nil {
		return nil, err
	}
	w := &wording{api: d.ID}
	w.apis(d, before, after)
	return w.all, nil
}

func readBoth(d *store.Difference, before, after any) error {
	for _, form := range []struct {
		text []byte
		into any
	}{{d.Before, before}, {d.After, after}} {
		if form.text == nil {
			continue
		}
		if err := json.Unmarshal(form.text, form.into); err != nil {
			return err
		}
	}
	return nil
}

// wording collects rights.
type wording struct {
	policy, api string
	all         []Right
}

// say adds a right, unless it is said of all APIs already.
func (w *wording) say(direction, format string, args ...any) {
	one := Right{Direction: direction, Policy: w.policy, Text: fmt.Sprintf(format, args...)}
	if slices.Contains(w.all, one) {
		return
	}
	one.API = w.api
	w.all = append(w.all, one)
}

// sayIf says one of two texts, by whether something is permitted.
func (w *wording) sayIf(permits bool, gain, loss string) {
	if permits {
		w.say(gained, "%s", gain)
		return
	}
	w.say(lost, "%s", loss)
}

// apis compares two forms of an API.
func (w *wording) apis(d *store.Difference, before, after *definition.API) {
	switch {
	case d.Before == nil:
		w.say(gained, "the API is served at %s", after.Proxy.ListenPath)
		return
	case d.After == nil:
		w.say(lost, "the API is no longer served: calls to %s are refused", before.Proxy.ListenPath)
		return
	}
	if was, is := before.IsActive(), after.IsActive(); was != is {
		w.sayIf(is, "the API is served", "the API is switched off: all its calls are refused")
	}
	if was, is := before.Proxy.ListenPath, after.Proxy.ListenPath; was != is {
		w.say(lost, "calls to %s no longer reach the API", was)
		w.say(gained, "the API is served at %s", is)
	}
	if before.Domain != after.Domain {
		w.say(lost, "calls to host %s no longer reach the API by that name", cmp.Or(before.Domain, "any"))
		w.say(gained, "the API is served at host %s", cmp.Or(after.Domain, "any"))
	}
	if before.UseKeyless != after.UseKeyless {
		w.sayIf(after.UseKeyless, "callers need no key", "callers without a key are refused")
	}
}

// policies compares two forms of a policy. gone: the second is none.
func (w *wording) policies(before, after *definition.Policy, gone bool) {
	if gone {
		w.say(lost, "keys that have no other policy are refused")
		return
	}
	if was, is := inUse(before), inUse(after); was != is {
		w.sayIf(is, "its keys are accepted", "its keys are refused: the policy is no longer active")
	}
	if was, is := before.ReportOnly(), after.ReportOnly(); was != is {
		w.sayIf(is, "its limits and rights are only measured, not enforced", "its limits and rights are enforced, no longer only measured")
	}
	w.limits(&before.Limits, &after.Limits)
	ids := slices.Collect(maps.Keys(before.AccessRights))
	for id := range after.AccessRights {
		if before.AccessRights[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		w.api = id
		was, is := before.AccessRights[id], after.AccessRights[id]
		w.access(was, is)
		if was != nil && is != nil && (was.Limit != nil || is.Limit != nil) {
			w.limits(limitsOf(was, before), limitsOf(is, after))
		}
	}
}

// inUse reports whether the keys of a policy are accepted.
func inUse(p *definition.Policy) bool {
	return (p.Active == nil || *p.Active) && !p.IsInactive && (p.State == "" || p.State == "active")
}

// limits compares limits.
func (w *wording) limits(before, after *definition.Limits) {
	if was, is := perSecond(before), perSecond(after); was != is || rateText(before) != rateText(after) {
		w.say(direction(was, is), "rate: %s, now %s", rateText(after), rateText(before))
	}
	if was, is := quotaText(before), quotaText(after); was != is {
		w.say(direction(boundless(float64(before.QuotaMax)), boundless(float64(after.QuotaMax))), "quota: %s, now %s", is, was)
	}
	if was, is := before.MaxQueryDepth, after.MaxQueryDepth; was != is {
		w.say(direction(boundless(float64(was)), boundless(float64(is))), "GraphQL depth: %s, now %s", levels(is), levels(was))
	}
}

// direction of a limit that rises or falls. A limit that stays and differs in its period
// is lost: calls may be refused that pass now.
func direction(before, after float64) string {
	if after > before {
		return gained
	}
	return lost
}

// boundless returns a limit as a number to compare.
func boundless(limit float64) float64 {
	if limit <= 0 {
		return 1 << 62
	}
	return limit
}

func perSecond(l *definition.Limits) float64 {
	if l.Rate <= 0 || l.Per <= 0 {
		return 1 << 62
	}
	return l.Rate / l.Per
}

func rateText(l *definition.Limits) string {
	if l.Rate <= 0 || l.Per <= 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%v calls in %v s", l.Rate, l.Per)
}

func quotaText(l *definition.Limits) string {
	switch {
	case l.QuotaMax <= 0:
		return "unlimited"
	case l.Renewal != nil:
		return fmt.Sprintf("%d calls by the calendar", l.QuotaMax)
	case l.QuotaRenewalRate <= 0:
		return fmt.Sprintf("%d calls in all", l.QuotaMax)
	}
	return fmt.Sprintf("%d calls in %d s", l.QuotaMax, l.QuotaRenewalRate)
}

func levels(depth int) string {
	if depth <= 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d levels", depth)
}

// access compares what a policy permits with one API.
func (w *wording) access(before, after *definition.Access) {
	switch {
	case before == nil:
		w.say(gained, "may call the API")
		return
	case after == nil:
		w.say(lost, "may no longer call the API")
		return
	}
	w.list("may call version %s", "may no longer call version %s", before.Versions, after.Versions)
	w.list("may call %s", "may no longer call %s", urlsOf(before), urlsOf(after))
	w.list("may select %s alone", "may no longer select %s", fieldsOf(before.AllowedTypes), fieldsOf(after.AllowedTypes))
	for _, field := range beyond(fieldsOf(before.RestrictedTypes), fieldsOf(after.RestrictedTypes)) {
		w.say(lost, "may no longer select %s", field)
	}
	for _, field := range beyond(fieldsOf(after.RestrictedTypes), fieldsOf(before.RestrictedTypes)) {
		w.say(gained, "may select %s", field)
	}
	if before.DisableIntrospection != after.DisableIntrospection {
		w.sayIf(!after.DisableIntrospection, "may read the schema by introspection", "may no longer read the schema by introspection")
	}
	if before.TrustedDocumentsOnly != after.TrustedDocumentsOnly {
		w.sayIf(!after.TrustedDocumentsOnly, "may run any operation", "may run stored operations alone")
	}
	w.fieldDepths(before, after)
}

// list compares lists of what is permitted alone; an empty one permits everything.
func (w *wording) list(gain, loss string, before, after []string) {
	switch {
	case len(before) == 0 && len(after) == 0:
		return
	case len(before) == 0:
		w.say(lost, strings.Replace(loss, "%s", "anything but %s", 1), strings.Join(after, ", "))
		return
	case len(after) == 0:
		w.say(gained, strings.TrimSuffix(gain, " alone"), "anything, not "+strings.Join(before, ", ")+" alone")
		return
	}
	for _, one := range beyond(after, before) {
		w.say(lost, loss, one)
	}
	for _, one := range beyond(before, after) {
		w.say(gained, strings.TrimSuffix(gain, " alone"), one)
	}
}

// fieldDepths compares the depths of single fields.
func (w *wording) fieldDepths(before, after *definition.Access) {
	was, is := depthsOf(before), depthsOf(after)
	names := slices.Sorted(maps.Keys(was))
	for name := range is {
		if _, known := was[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if was[name] != is[name] {
			w.say(direction(boundless(float64(was[name])), boundless(float64(is[name]))), "GraphQL depth below %s: %s, now %s", name, levels(is[name]), levels(was[name]))
		}
	}
}

func depthsOf(a *definition.Access) map[string]int {
	all := make(map[string]int, len(a.FieldAccessRights))
	for _, f := range a.FieldAccessRights {
		all[f.TypeName+"."+f.FieldName] = f.Limits.MaxQueryDepth
	}
	return all
}

// beyond returns the members of more that are not in some.
func beyond(some, more []string) []string {
	known := make(map[string]bool, len(some))
	for _, one := range some {
		known[one] = true
	}
	return slices.DeleteFunc(slices.Clone(more), func(one string) bool { return known[one] })
}

func fieldsOf(types []definition.TypeFields) (all []string) {
	for _, t := range types {
		for _, field := range t.Fields {
			all = append(all, t.Name+"."+field)
		}
	}
	return all
}

func urlsOf(a *definition.Access) (all []string) {
	for _, u := range a.AllowedURLs {
		for _, method := range u.Methods {
			all = append(all, method+" "+u.URL)
		}
	}
	return all
}

// limitsOf returns the limits of an API under a policy: its own, group by group, or else
// the policy's.
func limitsOf(a *definition.Access, of *definition.Policy) *definition.Limits {
	all := of.Limits
	if a.Limit == nil {
		return &all
	}
	own := &a.Limit.Limits
	if own.Rate != 0 || own.Per != 0 {
		all.Rate, all.Per = own.Rate, own.Per
	}
	if own.QuotaMax != 0 {
		all.QuotaMax, all.QuotaRenewalRate, all.Renewal = own.QuotaMax, own.QuotaRenewalRate, own.Renewal
	}
	if own.MaxQueryDepth != 0 {
		all.MaxQueryDepth = own.MaxQueryDepth
	}
	return &all
}
