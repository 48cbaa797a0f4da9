package usage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	rows "github.com/sluicegate/sluice/admin/store/usage"
)

// A request is a parsed query.
type request struct {
	from, to time.Time
	step     string // "none" is one of them
	by       rows.Grouping

	api, reason string  // "": all
	key         *string // nil: all
	status      int     // less than 0: all
	refused     bool

	page store.Page
}

// longest is the longest range for each step.
var longest = map[string]time.Duration{
	"minute": 2 * 24 * time.Hour, "hour": 92 * 24 * time.Hour, "day": 800 * 24 * time.Hour, "none": 800 * 24 * time.Hour,
}

// preset holds a route's defaults of parameters.
type preset struct {
	span    time.Duration
	step    string
	groupBy string
	refused bool
}

// parse parses the parameters of a call.
func parse(c *rest.Call, p preset, now time.Time) (r *request, err error) {
	r = &request{step: p.step, refused: p.refused, api: c.Query("api"), reason: c.Query("reason"), status: -1}
	if r.to, err = moment(c, "to", now); err != nil {
		return nil, err
	}
	if r.from, err = moment(c, "from", r.to.Add(-p.span)); err != nil {
		return nil, err
	}
	if step := c.Query("step"); step != "" {
		r.step = step
	}
	if err := r.checkRange(); err != nil {
		return nil, err
	}
	if c.HTTP.QueryArgs().Has("key") {
		key := c.Query("key")
		r.key = &key
	}
	if c.Query("status") != "" {
		if r.status, err = c.Number("status", -1); err != nil {
			return nil, err
		}
		if r.status < 0 || r.status > 999 {
			return nil, rest.BadRequest("status must be one of HTTP, or 0 for calls without an answer")
		}
	}
	groups := p.groupBy
	if c.HTTP.QueryArgs().Has("group_by") {
		groups = c.Query("group_by")
	}
	for name := range strings.SplitSeq(groups, ",") {
		if err := r.group(strings.TrimSpace(name)); err != nil {
			return nil, err
		}
	}
	r.page, err = c.Page(false)
	return r, err
}

// group adds a grouping by name.
func (r *request) group(name string) error {
	switch name {
	case "":
	case "api":
		r.by.API = true
	case "key":
		r.by.Key = true
	case "status":
		r.by.Status = true
	case "reason":
		r.by.Reason = true
	default:
		return rest.BadRequest(fmt.Sprintf("group_by must be some of api, key, status and reason, separated by commas, not %.40q", name))
	}
	return nil
}

func (r *request) checkRange() error {
	most, known := longest[r.step]
	switch {
	case !known:
		return rest.BadRequest(fmt.Sprintf("step must be minute, hour, day or none, not %.40q", r.step))
	case !r.from.Before(r.to):
		return rest.BadRequest("from must be before to")
	case r.to.Sub(r.from) > most:
		return rest.BadRequest(fmt.Sprintf("With step=%s, from and to must be at most %d days apart", r.step, most/(24*time.Hour)))
	}
	return nil
}

// moment parses a parameter that is a time.
func moment(c *rest.Call, name string, otherwise time.Time) (time.Time, error) {
	text := c.Query(name)
	if text == "" {
		return otherwise, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		seconds, wrong := strconv.ParseInt(text, 10, 64)
		if wrong != nil || seconds < 0 || seconds > math.MaxInt32*100 {
			return at, rest.BadRequest(fmt.Sprintf("%s must be a time as in RFC 3339, such as 2026-01-31T12:00:00Z, or unix seconds, not %.40q", name, text))
		}
		at = time.Unix(seconds, 0)
	}
	if year := at.UTC().Year(); year < 1970 || year > 9998 {
		return at, rest.BadRequest(name + " must be a time of the years 1970 to 9998")
	}
	return at.UTC(), nil
}

// shortRange is the longest range that is read from minutes instead of hours, so that it
// begins and ends exactly.
const shortRange = 3 * time.Hour

// query returns the query for the store. Minutes are complete from floor on; other
// ranges have full hours.
func (r *request) query(org string, floor time.Time) (*rows.Query, error) {
	q := &rows.Query{
		Org: org, Step: r.step, By: r.by, API: r.api, Key: r.key, Status: r.status, Reason: r.reason, Refused: r.refused, Page: r.page,
	}
	if r.step == "none" {
		q.Step = ""
	}
	unit := time.Hour
	switch minutes := !r.from.Before(floor); {
	case r.step == "minute" && !minutes:
		return nil, rest.BadRequest("Minutes are kept from " + floor.Format(time.RFC3339) + " on; ask for a later from, or for step=hour")
	case r.step == "minute", minutes && r.to.Sub(r.from) <= shortRange:
		q.Minutes, unit = true, time.Minute
	}
	q.Since, q.Until = r.from.Truncate(unit), r.to.Truncate(unit)
	if q.Until.Before(r.to) {
		q.Until = q.Until.Add(unit)
	}
	return q, nil
}
