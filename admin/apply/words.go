package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Right is what callers lose or gain.
type Right struct {
	// lost: calls that pass now may be refused; gained: calls that are refused now may pass.
	Direction string `json:"direction" enum:"lost,gained"`
	// Id of the policy whose keys are meant; left out: all callers of the API.
	Policy string `json:"policy_id,omitempty"`
	// Id of the API that the right is about; left out: all APIs of the policy.
	API string `json:"api_id,omitempty"`
	// The right in one line of English.
	Text string `json:"text"`
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
	w.limit("rate limit", rateOf(before), rateOf(after))
	w.limit("quota", quotaOf(before), quotaOf(after))
	w.limit("GraphQL depth limit", depthOf(before.MaxQueryDepth), depthOf(after.MaxQueryDepth))
}

// An amount is a limit in words.
type amount struct {
	max    float64 // 0: unlimited
	per    float64 // the period in seconds; 0: there is none
	unit   string  // calls, levels
	within string  // the period in words, such as " in 60 s"
}

// limit says how a limit differs.
func (w *wording) limit(name string, was, is amount) {
	switch {
	case was == is:
	case was.max == 0:
		w.say(lost, "%s added: %s", name, is)
	case is.max == 0:
		w.say(gained, "%s removed: it was %s", name, was)
	case was.within != is.within:
		w.say(was.direction(is), "%s changed from %s to %s", name, was, is)
	case was.max < is.max:
		w.say(gained, "%s raised from %s to %s", name, plain(was.max), is)
	default:
		w.say(lost, "%s lowered from %s to %s", name, plain(was.max), is)
	}
}

// String returns the amount with its unit and period.
func (a amount) String() string {
	unit := a.unit
	if a.max == 1 {
		unit = strings.TrimSuffix(unit, "s")
	}
	return plain(a.max) + " " + unit + a.within
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// direction of a limit that gets another period. It is gained only when each call that
// passes under the former passes under the new one, too.
func (a amount) direction(to amount) string {
	if a.per > 0 && to.per > 0 && to.max >= a.max && to.max/to.per >= a.max/a.per {
		return gained
	}
	return lost
}

func rateOf(l *definition.Limits) amount {
	if l.Rate <= 0 || l.Per <= 0 {
		return amount{}
	}
	return amount{l.Rate, l.Per, "calls", " in " + plain(l.Per) + " s"}
}

func quotaOf(l *definition.Limits) amount {
	a := amount{max: float64(l.QuotaMax), unit: "calls"}
	switch {
	case l.QuotaMax <= 0:
		return amount{}
	case l.Renewal != nil:
		a.within = " per calendar " + l.Renewal.Every
		if l.Renewal.Zone != "" {
			a.within += " (" + l.Renewal.Zone + ")"
		}
	case l.QuotaRenewalRate <= 0:
		a.within = " in all"
	default:
		a.per, a.within = float64(l.QuotaRenewalRate), fmt.Sprintf(" in %d s", l.QuotaRenewalRate)
	}
	return a
}

// depthOf is a depth as an amount.
func depthOf(levels int) amount {
	if levels <= 0 {
		return amount{}
	}
	return amount{max: float64(levels), unit: "levels"}
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
	w.list("call", "version", versionsOf(before), versionsOf(after))
	w.list("call", "path", urlsOf(before), urlsOf(after))
	w.list("select", "field", fieldsOf(before.AllowedTypes), fieldsOf(after.AllowedTypes))
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
		w.sayIf(!after.TrustedDocumentsOnly, "may run any operation", "may run only stored operations")
	}
	w.fieldDepths(before, after)
}

// list compares lists of what alone callers may call or select; an empty one permits
// everything.
func (w *wording) list(verb, things string, before, after []string) {
	switch {
	case len(before) == 0 && len(after) == 0:
		return
	case len(before) == 0:
		w.say(lost, "may %s only %s, no longer any %s", verb, strings.Join(after, ", "), things)
		return
	case len(after) == 0:
		w.say(gained, "may %s any %s, no longer only %s", verb, things, strings.Join(before, ", "))
		return
	}
	for _, one := range beyond(after, before) {
		w.say(lost, "may no longer %s %s", verb, one)
	}
	for _, one := range beyond(before, after) {
		w.say(gained, "may %s %s", verb, one)
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
		w.limit("GraphQL depth limit below "+name, depthOf(was[name]), depthOf(is[name]))
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

func versionsOf(a *definition.Access) (all []string) {
	for _, name := range a.Versions {
		all = append(all, "version "+name)
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
