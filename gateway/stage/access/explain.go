package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/rights"
)

// Explain implements pipeline.Explainer: it reports what the key may do with the API,
// and where its access rights come from.
func (s *stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	all, err := rights.Effective(ex.Session, ex.Policies)
	if err != nil {
		f.Said, f.Fix = err.Error(), "correct apply_policies of the key, or the policies that it names"
		return
	}
	for _, id := range all.Missing {
		f.Fact("apply_policies", id, "does not exist, and is without effect", "the key")
	}
	if all.Inactive.Value {
		f.Said = "the key is switched off by " + all.Inactive.From.String()
		f.Fact("is_inactive", "true", "", all.Inactive.From.String())
		f.Fix = "switch " + all.Inactive.From.String() + " on again"
		return
	}
	may, ok := all.For(s.def.ID)
	switch {
	case foreign(ex.Session, s.def):
		f.Said = "the key and the API are of different organisations"
		f.Fact("org_id", s.def.OrgID, ex.Session.OrgID, "definition")
		f.Fix = "use a key of the API's organisation"
	case all.Master && !s.opts.MasterKeys:
		f.Said = "the key has neither access_rights nor policies, and keys.allow_master_keys is off"
		f.Fact("keys.allow_master_keys", "false", "", "the gateway's settings")
		f.Fix = fmt.Sprintf("give the key access_rights[%q], or a policy that has it", s.def.ID)
	case !ok:
		f.Said = fmt.Sprintf("access_rights has no entry for API %q", s.def.ID)
		f.Fact("access_rights", strings.Join(all.APIs(), ", "), s.def.ID, source(all))
		f.Fix = fmt.Sprintf("add access_rights[%q] to %s", s.def.ID, source(all))
	default:
		s.explainAccess(ex, f, all, may)
	}
}

// source returns what has the list of APIs.
func source(all *rights.Rights) string {
	if len(all.Policies) == 0 {
		return "the key"
	}
	return "policy " + strings.Join(all.Policies, ", or policy ")
}

// explainAccess reports versions, methods and paths, and which meta data policies set.
func (s *stage) explainAccess(ex *pipeline.Exchange, f *pipeline.Finding, all *rights.Rights, may *rights.Access) {
	if f.Said == "" {
		f.Said = "access_rights has the API"
	}
	for _, v := range may.Versions {
		f.Fact("versions", v.Value, "", origins(v.From))
	}
	for _, name := range slices.Sorted(maps.Keys(all.Meta)) {
		if from := all.Meta[name].From; from.Kind == rights.Policy {
			f.Fact("meta_data."+name, "", "", from.String())
		}
	}
	for _, u := range may.AllowedURLs {
		f.Fact("allowed_urls", strings.Join(u.Value.Methods, ",")+" "+u.Value.URL, "", origins(u.From))
	}
	if f.Verdict != pipeline.Rejected {
		return
	}
	if ex.Rejection == versionDenied {
		f.Said = fmt.Sprintf("version %q is none of those that the key may use", ex.Version.Name)
		f.Fix = fmt.Sprintf("add %q to versions of access_rights[%q]", ex.Version.Name, s.def.ID)
		return
	}
	if ex.Rejection.Reason != pipeline.ReasonURLDenied {
		f.Said = ex.Rejection.Message
		return
	}
	f.Said = fmt.Sprintf("no entry of allowed_urls takes %s %s", ex.Call.Method, ex.Path)
	f.Fix = fmt.Sprintf("add %s of %s to allowed_urls of %s", ex.Call.Method, ex.Path, origins(may.AllowedURLs[0].From))
}

func origins(all []rights.Origin) string {
	texts := make([]string, len(all))
	for i, o := range all {
		texts[i] = o.String()
	}
	return strings.Join(texts, ", ")
}
