package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/throttle"
)

// Bounds of the calls that developers make from the portal.
const (
	maxTried   = 8 // at the same time, of all developers
	maxTriedBy = 2 // of one developer
)

// triedPace slows down a developer who makes calls without a pause: after 60 of them one
// in two seconds is made.
var triedPace = throttle.Pace{Free: 60, First: 2 * time.Second, Longest: 2 * time.Second, Quiet: time.Minute}

// A tries bounds the calls of developers. It is safe for concurrent use.
type tries struct {
	pace     *throttle.Backoff
	calls    *underWay
	streamed *underWay
}

func newTries(now func() time.Time) *tries {
	return &tries{pace: throttle.NewBackoff(triedPace, now), calls: newUnderWay(maxTried, maxTriedBy), streamed: newUnderWay(maxStreamed, maxStreamedBy)}
}

// begin admits a call of a developer; done ends it.
func (t *tries) begin(developer string) (done func(), err error) {
	done, ok := t.calls.enter(developer)
	if !ok {
		return nil, rest.Unavailable("Too many calls are under way; try again")
	}
	if wait := t.pace.Try(developer); wait > 0 {
		done()
		f := rest.Refuse(fasthttp.StatusTooManyRequests, "Too many calls from the portal; try again in a moment")
		f.Header = map[string]string{fasthttp.HeaderRetryAfter: strconv.Itoa(int(math.Ceil(wait.Seconds())))}
		return nil, f
	}
	return done, nil
}

func (s *Server) tryRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "POST", Path: "/api/portal/me/apis/{id}/try", Summary: "Call the API of a catalogue entry through a gateway, as one's own key; the call counts under its limits", Tag: "Portal", Role: rest.Developer,
			Body: tryBody{}, Reply: tryAnswer{}, MaxBody: 2 * maxPlayBody, Within: playedWithin + 5*time.Second, Secret: true,
			Wrong: []int{400, 404, 409, 413, 415, 504}, Events: true, Handle: s.try,
		},
		{
			Method: "GET", Path: "/api/portal/me/apis/{id}/schema", Summary: "Get what one's own key may use of the schema of a catalogue entry's API", Tag: "Portal", Role: rest.Developer,
			Query: []string{"key_id"}, Reply: rules.Visible{}, Wrong: []int{400, 404, 409}, Handle: s.ownSchema,
		},
	}
}

// tryBody is a call that a developer makes.
type tryBody struct {
	// Id of the developer's own key that calls; left out for an API that asks for none.
	Key string `json:"key_id,omitempty"`
	AskedCall
}

// tryAnswer is the answer to a developer's call.
type tryAnswer struct {
	AskedAnswer
	// What the stages of the gateway decided, without anything about other keys, upstreams and the
	// configuration.
	Explanation triedReport `json:"explanation"`
}

// triedReport is an explanation for developers: nothing of other keys, upstreams and the
// configuration.
type triedReport struct {
	// Stages of the gateway, up to the one that refused.
	Steps []triedStep `json:"steps"`
	// Whether the call was allowed and, if not, why.
	Outcome triedOutcome `json:"outcome"`
}

type triedStep struct {
	// Name of the stage of the gateway.
	Stage string `json:"stage"`
	// ok: the call goes on; answered: the stage itself answers; fail: the call is refused; untold: the
	// decision is unknown, and the call goes on.
	Result string `json:"result" enum:"ok,answered,fail,untold"`
	// Decision in one line of English; of the stage that refused only.
	Said string `json:"said,omitempty"`
	// Rules by which the stage refused; of the stage that refused only.
	Facts []triedFact `json:"facts,omitempty"`
}

type triedFact struct {
	// Field or limit that was checked, as policies and keys call it.
	Rule string `json:"rule"`
	// Value that the rule is set to.
	Value string `json:"value"`
	// Value that the call has.
	Seen string `json:"seen,omitempty"`
	// Policy or key that has the rule.
	From string `json:"from,omitempty"`
}

type triedOutcome struct {
	// Whether no stage refused the call.
	Allowed bool `json:"allowed"`
	// Reason of the refusal.
	// Example: "rate_limit"
	Reason string `json:"reason,omitempty"`
	// Name of the stage that refused.
	Stage string `json:"stage,omitempty"`
}

func (s *Server) try(ctx context.Context, c *rest.Call) (any, error) {
	var in tryBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if problems := append(problemsOf(&in.AskedCall), forwardedProblems(&in.AskedCall)...); len(problems) > 0 {
		return nil, &problems
	}
	if s.deps.Try == nil {
		return nil, rest.NotFound("This portal makes no calls")
	}
	entry, own, err := s.triedBy(ctx, c, in.Key)
	if err != nil {
		return nil, err
	}
	row, err := s.deps.Store.APIByID(ctx, c.Who.Org, entry.APIID)
	if err != nil {
		return nil, rest.Missing(err, noAPI)
	}
	describe, err := describeCall(&row, c.Address(), &in.AskedCall)
	if err != nil {
		return nil, err
	}
	if own != nil {
		describe["key_hash"] = own.Hash
	}
	text, err := json.Marshal(describe)
	if err != nil {
		return nil, err
	}
	done, err := s.tries.begin(c.Who.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	call := &PlayedCall{Org: c.Who.Org, API: row.ID, Description: text, Counted: true}
	if in.Stream {
		return s.stream(ctx, c, &streaming{by: s.deps.Try, call: call, of: s.tries.streamed, show: showTried})
	}
	got, err := playWith(ctx, s.deps.Try, call)
	if err != nil {
		return nil, err
	}
	return showTried(got)
}

// forwarded are header fields in which proxies say who calls.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "X-Request-Id"}

func forwardedProblems(sent *AskedCall) (problems definition.Problems) {
	for given := range sent.Headers {
		if slices.ContainsFunc(forwarded, func(name string) bool { return strings.EqualFold(name, given) }) {
			problems = append(problems, definition.Problem{Path: "headers." + given, Message: "is set by the gateway; leave it out"})
		}
	}
	return problems
}

// triedBy returns the catalogue entry that the path names, and the developer's own key that
// calls its API: nil for one that asks for no key.
func (s *Server) triedBy(ctx context.Context, c *rest.Call, key string) (*model.Entry, *credentials.Caller, error) {
	entry, err := s.portal.Offered(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, nil, err
	}
	switch {
	case entry.APIID == "":
		return nil, nil, rest.NotFound("The entry has no API")
	case key == "" && !entry.IsKeyless:
		return nil, nil, rest.BadRequest("key_id: must name one of your keys for this API")
	case key == "":
		return entry, nil, nil
	}
	own, err := s.portal.OwnCaller(ctx, c.Who, key, entry.APIID)
	return entry, own, err
}

// showTried returns the answer to a developer.
func showTried(got *PlayedAnswer) (any, error) {
	report, err := triedReportOf(got.Report)
	return &tryAnswer{showAnswer(got), report}, err
}

// openReasons are those of refusals whose rule belongs to the caller's plan, or to the
// call itself. Of others the answer alone tells.
var openReasons = []string{
	"rate_limit", "quota_exceeded", "depth_limit", "operation_limit", "field_restricted", "introspection_disabled",
	"graphql_invalid", "graphql_too_large", "untrusted_document", "url_denied", "version_denied", "body_too_large",
}

// triedReportOf returns what a developer may know of an explanation.
func triedReportOf(text []byte) (triedReport, error) {
	shown := triedReport{Steps: []triedStep{}}
	if len(text) == 0 {
		return shown, nil
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		return shown, fmt.Errorf("reading an explanation: %w", err)
	}
	open := slices.Contains(openReasons, shown.Outcome.Reason)
	for i := range shown.Steps {
		step := &shown.Steps[i]
		if step.Result != "fail" || !open {
			step.Said, step.Facts = "", nil
		}
		// A rule that the call has no value for is one that it did not break; lists of
		// what is hidden are among them.
		step.Facts = slices.DeleteFunc(step.Facts, func(f triedFact) bool { return f.Seen == "" })
		for j := range step.Facts {
			if from := &step.Facts[j].From; !strings.HasPrefix(*from, "policy ") && !strings.Contains(*from, " policy ") && !strings.HasPrefix(*from, "the key") {
				*from = ""
			}
		}
		if step.Result == "fail" {
			shown.Steps = shown.Steps[:i+1]
			break
		}
	}
	return shown, nil
}

// ownSchema answers with what a developer's key may use of a schema.
func (s *Server) ownSchema(ctx context.Context, c *rest.Call) (any, error) {
	entry, own, err := s.triedBy(ctx, c, c.Query("key_id"))
	if err != nil {
		return nil, err
	}
	if own == nil {
		own = new(credentials.Caller)
	}
	seen, err := s.visible(ctx, c.Who.Org, entry.APIID, own.Session, own.Policies)
	if errors.Is(err, store.ErrNotFound) {
		err = rest.NotFound(noAPI)
	}
	return seen, err
}
