package catalogue

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// Limits are what a key for an entry may do. Zero is no limit.
type Limits struct {
	// Calls allowed in per seconds; 0: no limit.
	Rate float64 `json:"rate"`
	// Seconds that rate is of; 0: no limit.
	Per float64 `json:"per"`
	// Calls allowed in quota_renewal_rate seconds, or in a period of the calendar; 0: no quota.
	Quota int64 `json:"quota_max"`
	// Seconds after which the quota renews; 0: it does not, or by the calendar.
	Renewal int64 `json:"quota_renewal_rate"`
	// Period of the calendar in which the quota renews: hour, day, week or month; left out: by
	// seconds.
	Calendar string `json:"quota_renewal_calendar,omitempty"`
	// Levels that a GraphQL operation may have; 0: no limit.
	Depth int `json:"max_query_depth"`
	// The limits as sentences for people.
	// Example: ["60 requests a minute", "1000 requests a day"]
	Words []string `json:"in_words"`
}

// limitsOf returns what a policy grants on an API.
func limitsOf(row *store.OfferedPolicy, api string) (*Limits, error) {
	p := new(definition.Policy)
	if err := json.Unmarshal(row.Body, p); err != nil {
		return nil, fmt.Errorf("reading policy %s: %w", row.ID, err)
	}
	all := p.Limits
	if access := p.AccessRights[api]; access != nil && access.Limit != nil {
		narrow(&all, &access.Limit.Limits)
	}
	l := new(Limits)
	part := p.Partitions
	storedCatalogue := !part.Quota && !part.RateLimit && !part.Complexity && !part.ACL && !part.PerAPI
	if (storedCatalogue || part.PerAPI || part.RateLimit) && all.Rate > 0 && all.Per > 0 {
		l.Rate, l.Per = all.Rate, all.Per
	}
	if (storedCatalogue || part.PerAPI || part.Quota) && all.QuotaMax > 0 {
		l.Quota, l.Renewal = all.QuotaMax, max(all.QuotaRenewalRate, 0)
		if all.Renewal != nil && all.Renewal.Every != "" {
			l.Calendar, l.Renewal = all.Renewal.Every, 0
		}
	}
	if storedCatalogue || part.PerAPI || part.Complexity {
		l.Depth = max(all.MaxQueryDepth, 0)
	}
	l.Words = l.words()
	return l, nil
}

// narrow replaces limits by those of one API, group by group.
func narrow(all, one *definition.Limits) {
	if one.Rate != 0 || one.Per != 0 {
		all.Rate, all.Per = one.Rate, one.Per
	}
	if one.QuotaMax != 0 {
		all.QuotaMax, all.QuotaRenewalRate, all.Renewal = one.QuotaMax, one.QuotaRenewalRate, one.Renewal
	}
	if one.MaxQueryDepth != 0 {
		all.MaxQueryDepth = one.MaxQueryDepth
	}
}

// words says the limits as people would.
func (l *Limits) words() []string {
	words := []string{}
	if l.Rate > 0 {
		words = append(words, calls(l.Rate)+" "+every(l.Per))
	}
	switch {
	case l.Quota <= 0:
	case l.Calendar != "":
		words = append(words, calls(float64(l.Quota))+" each calendar "+l.Calendar)
	case l.Renewal == 0:
		words = append(words, calls(float64(l.Quota))+" in all")
	default:
		words = append(words, calls(float64(l.Quota))+" "+every(float64(l.Renewal)))
	}
	if len(words) == 0 {
		words = append(words, "any number of requests")
	}
	if l.Depth > 0 {
		words = append(words, "GraphQL operations up to "+strconv.Itoa(l.Depth)+" levels deep")
	}
	return words
}

func calls(n float64) string {
	if n == 1 {
		return "1 request"
	}
	return number(n) + " requests"
}

// units are the periods that have a name, in seconds.
var units = []struct {
	seconds float64
	one     string
	many    string
}{{30 * 86400, "in 30 days", ""}, {7 * 86400, "a week", "weeks"}, {86400, "a day", "days"}, {3600, "an hour", "hours"}, {60, "a minute", "minutes"}, {1, "a second", "seconds"}}

// every says how long a period is.
func every(seconds float64) string {
	for _, u := range units {
		if seconds == u.seconds {
			return u.one
		}
	}
	for _, u := range units {
		if n := seconds / u.seconds; u.many != "" && n > 1 && n == float64(int64(n)) {
			return "every " + number(n) + " " + u.many
		}
	}
	return "every " + number(seconds) + " seconds"
}

// number writes a number with commas between thousands.
func number(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	storedCatalogue, fraction := text, ""
	for i := range text {
		if text[i] == '.' {
			storedCatalogue, fraction = text[:i], text[i:]
		}
	}
	for i := len(storedCatalogue) - 3; i > 0; i -= 3 {
		storedCatalogue = storedCatalogue[:i] + "," + storedCatalogue[i:]
	}
	return storedCatalogue + fraction
}
