package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/usage"
)

const day = 24 * time.Hour

// The query parameters of reports.
var (
	ranging   = []string{"from", "to", "step", "group_by"}
	filtering = append(append([]string{"api", "key", "status", "reason"}, ranging...), rest.Paging...)
	ofOneKey  = append(append([]string{"hashed", "api", "status", "reason"}, ranging...), rest.Paging...)
)

// Routes lists the routes of the service.
func (s *Service) Routes() []rest.Route {
	return append(s.refusalRoutes(), []rest.Route{
		{
			Method: "GET", Path: "/api/usage", Summary: "Count calls by time, API, key, status and reason", Tag: "Usage", Role: rest.Viewer,
			Query: filtering, Reply: Report{}, Wrong: []int{400}, Handle: s.showing(preset{span: day, step: "none"}),
		},
		{
			Method: "GET", Path: "/api/usage/rejections", Summary: "Count calls that gateways refused or failed, by reason unless asked otherwise", Tag: "Usage", Role: rest.Viewer,
			Query: filtering, Reply: Report{}, Wrong: []int{400}, Handle: s.showing(preset{span: day, step: "none", groupBy: "reason", refused: true}),
		},
		{
			Method: "GET", Path: "/api/keys/{key}/usage", Summary: "Count the calls of a key, by day of the last week unless asked otherwise", Tag: "Keys", Role: rest.Viewer,
			Query: ofOneKey, Reply: Report{}, Wrong: []int{400, 404}, Handle: s.showKey,
		},
		{
			Method: "GET", Path: "/api/portal/me/keys/{key}/usage", Summary: "Count the calls of one's own key, by day of the last week unless asked otherwise", Tag: "Portal", Role: rest.Developer,
			Query: []string{"days", "step", "group_by"}, Reply: Report{}, Wrong: []int{400, 404}, Handle: s.showOwn,
		},
		{
			Method: "POST", Path: "/api/gateway/usage", Summary: "Hand over what a gateway has counted; a batch that comes again counts once", Tag: "Gateways", Role: rest.Gateway,
			Body: usage.Batch{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Handle: s.take,
		},
	}...)
}

// showing returns a handler of reports with defaults.
func (s *Service) showing(p preset) rest.Handler {
	return func(ctx context.Context, c *rest.Call) (any, error) {
		r, err := parse(c, p, s.deps.Now())
		if err != nil {
			return nil, err
		}
		return s.named(ctx, c.Who.Org, r)
	}
}

func (s *Service) showKey(ctx context.Context, c *rest.Call) (any, error) {
	identity, err := s.deps.Key(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := parse(c, preset{span: 7 * day, step: "day"}, s.deps.Now())
	if err != nil {
		return nil, err
	}
	key := s.keyOf(identity)
	r.key = &key
	return s.named(ctx, c.Who.Org, r)
}

// showOwn answers a developer with all groups on one page.
func (s *Service) showOwn(ctx context.Context, c *rest.Call) (any, error) {
	identity, err := s.deps.OwnKey(ctx, c)
	if err != nil {
		return nil, err
	}
	days, err := c.Number("days", 7)
	if err != nil {
		return nil, err
	}
	if days < 1 || days > maxDays {
		return nil, rest.BadRequest(fmt.Sprintf("days must be in 1…%d, not %d", maxDays, days))
	}
	k := KeyRange{Org: c.Who.Org, Identity: identity, Days: days, Step: cmp.Or(c.Query("step"), "day")}
	for name := range strings.SplitSeq(c.Query("group_by"), ",") {
		k.By = append(k.By, strings.TrimSpace(name))
	}
	return s.OfKey(ctx, k)
}

// maxDays bounds the range for developers.
const maxDays = 92

// take adds a batch. Meta of the answer is a usage.Receipt if something of the batch
// cannot be counted. Unknown members are ignored, so that batches of newer gateways
// count.
func (s *Service) take(ctx context.Context, c *rest.Call) (any, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	var b usage.Batch
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, rest.BadRequest("Request body malformed: " + err.Error())
	}
	refused, err := s.Receive(ctx, &b)
	if err != nil {
		return nil, err
	}
	if refused.Refused > 0 {
		return rest.Done("Usage counted, except for what Meta names", refused), nil
	}
	return rest.Done("Usage counted", nil), nil
}
