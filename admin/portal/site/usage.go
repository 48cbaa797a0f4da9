package site

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/usage"
)

// timeFormat is how times are given to templates.
const timeFormat = time.RFC3339

// mustDuration returns one of the durations that the site itself names.
func mustDuration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// A chart is the calls of seven days, drawn as bars and written as a table.
type chart struct {
	Days    []day
	Max     int64
	Empty   bool
	Summary string // the chart in words
}

// A day is the calls of one day by what became of them. Heights and positions are those
// of the bars.
type day struct {
	Label, Long              string
	OK, Refused, Failed      int64
	X                        int
	OKY, OKH                 int
	RefusedY, RefusedH       int
	FailedY, FailedH, Center int
}

// All is the number of the day's calls.
func (d *day) All() int64 { return d.OK + d.Refused + d.Failed }

// Measures of the chart, in the units of its view box.
const (
	chartDays   = 7
	barWidth    = 56
	barGap      = 24
	chartHeight = 120
)

// chartOf returns the chart of a report by day and reason.
func chartOf(r *usage.Report, now time.Time) *chart {
	c := &chart{Days: make([]day, chartDays)}
	today := now.UTC().Truncate(24 * time.Hour)
	for i := range c.Days {
		at := today.AddDate(0, 0, i-chartDays+1)
		x := i * (barWidth + barGap)
		c.Days[i] = day{Label: at.Format("Mon"), Long: at.Format("Mon 2 Jan"), X: x, Center: x + barWidth/2}
	}
	for i := range r.Data {
		row := &r.Data[i]
		if row.At == nil {
			continue
		}
		back := int(today.Sub(row.At.UTC().Truncate(24*time.Hour)).Hours() / 24)
		if back < 0 || back >= chartDays {
			continue
		}
		d := &c.Days[chartDays-1-back]
		refused := row.Reason != nil && *row.Reason != ""
		switch {
		case refused && !isFailure(*row.Reason):
			d.Refused += row.Hits
		default:
			d.Failed += row.Errors
			d.OK += row.Hits - row.Errors
		}
	}
	c.draw()
	return c
}

// isFailure reports whether a reason is of a call that the gateway tried and that failed.
func isFailure(reason string) bool { return strings.HasPrefix(reason, "upstream") }

// draw sets the heights of the bars and the summary.
func (c *chart) draw() {
	var ok, refused, failed int64
	for i := range c.Days {
		d := &c.Days[i]
		c.Max = max(c.Max, d.All())
		ok, refused, failed = ok+d.OK, refused+d.Refused, failed+d.Failed
	}
	c.Empty = c.Max == 0
	c.Summary = fmt.Sprintf("%s answered, %s refused and %s failed calls in the last seven days", number(ok), number(refused), number(failed))
	if c.Empty {
		return
	}
	height := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(2, int(n*(chartHeight-8)/c.Max))
	}
	for i := range c.Days {
		d := &c.Days[i]
		d.OKH, d.RefusedH, d.FailedH = height(d.OK), height(d.Refused), height(d.Failed)
		d.OKY = chartHeight - d.OKH
		d.RefusedY = d.OKY - d.RefusedH
		d.FailedY = d.RefusedY - d.FailedH
	}
}

// reasonTexts say for callers why a call was refused; they name neither other keys nor
// upstreams.
var reasonTexts = map[string]string{
	"access_denied":          "The plan does not include this API.",
	"address_denied":         "Calls from this address are not allowed.",
	"api_rate_limit":         "The API had too many calls, of all callers together.",
	"auth_expired":           "The key has ended.",
	"auth_inactive":          "The key is inactive.",
	"auth_malformed":         "The credential has the wrong form.",
	"auth_missing":           "No key was sent.",
	"auth_throttled":         "Too many wrong passwords.",
	"auth_unknown":           "The key is not known.",
	"bad_request":            "The request was malformed.",
	"body_too_large":         "The body of the call was too large.",
	"certificate_denied":     "The client certificate is not accepted.",
	"certificate_expired":    "The client certificate has expired.",
	"certificate_missing":    "No client certificate was sent.",
	"depth_limit":            "The query was deeper than the plan allows.",
	"field_restricted":       "A field was selected that the plan does not include.",
	"graphql_invalid":        "The GraphQL operation is not valid.",
	"graphql_media":          "The content type is not one of GraphQL.",
	"graphql_too_large":      "The GraphQL operation was too large.",
	"header_too_large":       "The head of the request was too large.",
	"introspection_disabled": "The plan does not include introspection.",
	"length_required":        "The request has to say how long its body is.",
	"message_refused":        "The message was not accepted.",
	"method_not_allowed":     "The method is not offered.",
	"operation_limit":        "The operation asks for more at once than the plan allows.",
	"org_quota":              "The quota of all keys together was used up.",
	"org_rate_limit":         "The rate of all keys together was used up.",
	"overloaded":             "The gateway was overloaded.",
	"path_denied":            "The path is not offered.",
	"quota_exceeded":         "The quota of the plan was used up.",
	"rate_limit":             "Too many calls in a short time: the rate of the plan was used up.",
	"stream_failed":          "The message could not be passed on.",
	"stream_timeout":         "It is not known whether the message was passed on.",
	"stream_unavailable":     "Nothing took the message at that time, or there were too many clients.",
	"tls_required":           "The API is reached by https only.",
	"token_claims":           "The token is expired, or not for this API.",
	"token_malformed":        "The token is no JSON Web Token.",
	"token_signature":        "The signature of the token is not valid.",
	"tunnel_limit":           "Too many open connections.",
	"untrusted_document":     "The plan allows stored operations only.",
	"url_denied":             "The path or method is not part of the plan.",
	"version_denied":         "The version is not part of the plan.",
	"version_expired":        "The version has ended.",
	"version_missing":        "The call names no version.",
	"version_unknown":        "There is no such version.",
}

// reasonText says why a call was refused.
func reasonText(reason string) string {
	if text := reasonTexts[reason]; text != "" {
		return text
	}
	if isFailure(reason) {
		return "The service behind the API did not answer."
	}
	return strings.ReplaceAll(reason, "_", " ")
}
