package auth

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Explain says what each mode decided by.
func (s *stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if ex.Session == nil && ex.Rejection == nil {
		return
	}
	for _, m := range s.modes {
		m.Explain(ex, f)
	}
	if ex.Rejection == nil && ex.Play != nil && ex.Play.Policy != "" {
		f.Said = "the policy " + ex.Play.Policy + " calls, as a key with it alone would"
		return
	}
	if ex.Rejection == nil {
		f.Said = "the key " + ex.KeyName + " is known and in force"
		if ex.InGrace {
			f.Said += " until " + time.Unix(ex.Session.Expires, 0).UTC().Format(time.RFC3339) + ": it has a successor"
		}
		explainPast(ex, f)
		if s.strip != nil {
			f.Fact("strip_auth_data", "true", "", "definition")
		}
	}
}

// explain says where a credential is expected.
func (s *source) explain(_ *pipeline.Exchange, f *pipeline.Finding) {
	for _, place := range []struct{ rule, name string }{
		{"cookie_name", s.cookie}, {"param_name", s.param}, {"auth_header_name", s.header},
	} {
		if place.name != "" {
			f.Fact(place.rule, place.name, "", "definition")
		}
	}
}

// wanted describes where a credential is expected.
func (s *source) wanted() string {
	var places []string
	if s.header != "" {
		places = append(places, "in the header "+s.header)
	}
	if s.param != "" {
		places = append(places, "in the query parameter "+s.param)
	}
	if s.cookie != "" {
		places = append(places, "in the cookie "+s.cookie)
	}
	if s.late {
		places = append(places, "in the payload of connection_init")
	}
	return strings.Join(places, " or ")
}

// explainEnd says why a session that was found was refused.
func explainEnd(ex *pipeline.Exchange, f *pipeline.Finding) {
	switch ex.Rejection {
	case inactive:
		f.Fact("is_inactive", "true", "", "key")
		f.Fix = "set is_inactive of the key " + ex.KeyName + " to false"
	case expired:
		f.Fact("expires", time.Unix(ex.Session.Expires, 0).UTC().Format(time.RFC3339), ex.Moment().UTC().Format(time.RFC3339), "key")
		f.Fix = "give the key " + ex.KeyName + " a later end, or issue another key"
		if ex.InGrace {
			f.Fix = "use the successor of the key " + ex.KeyName + ": this one was replaced, and its grace period is over"
		}
	case noCertificate, expiredCertificate, earlyCertificate, otherCertificate:
		explainBinding(ex, f)
	case unavailable:
		f.Fix = "wait until the key store can be reached"
	}
}

// explainPast says whether the key has changed since the time of the dry run.
func explainPast(ex *pipeline.Exchange, f *pipeline.Finding) {
	if ex.DryRunAt() == nil {
		return
	}
	changed, err := strconv.ParseInt(ex.Session.LastUpdated, 10, 64)
	if err != nil || !ex.DryRunAt().Before(time.Unix(changed, 0)) { // the session is of a token's claims, or has not changed since
		return
	}
	f.Untold = true
	f.Said += "; it was changed at " + time.Unix(changed, 0).UTC().Format(time.RFC3339) + ", and what it was before is not kept"
}
