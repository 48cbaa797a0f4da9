package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Player makes calls of the playground through a gateway.
type Player interface {
	// Play makes a call. The error is *definition.Problems for a faulty description, and
	// ctx's if the answer did not come in time. With PlayedCall.Live it returns once the
	// subscription has ended, soon after ctx has; the error may be a PlayedEnd then.
	Play(ctx context.Context, call *PlayedCall) (*PlayedAnswer, error)
}

// A PlayedCall is a call of the playground. It has no credential but those that the
// operator has put into its headers.
type PlayedCall struct {
	Org, API    string
	Description []byte // of the request, as for POST /api/explain
	Counted     bool   // under rates and quotas

	Live PlayedSink // takes the results of a subscription; nil: they are part of the answer
}

// A PlayedAnswer is what came of a call of the playground.
type PlayedAnswer struct {
	Sent      bool // false: the request does not reach the API, for which the explanation has the reason
	Status    int
	Headers   []PlayedHeader
	Body      []byte // at most 1 MiB
	Cut       bool   // the body was longer, or did not end in time
	RequestID string
	Took      time.Duration
	Upstream  time.Duration
	Report    json.RawMessage // as POST /api/explain answers
}

// Bounds of the playground.
const (
	playedWithin = 10 * time.Second
	maxPlayed    = 4       // calls at the same time
	maxPlayBody  = 1 << 20 // bytes of a request
)

func (s *Server) playgroundRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "POST", Path: "/api/apis/probe", Summary: "Find out what answers at an address: GraphQL, an OpenAPI document, or anything else", Tag: "APIs", Role: rest.Editor,
			Body: probeBody{}, Reply: schemas.Found{}, Wrong: []int{400, 413, 415}, Handle: s.probe,
		},
		{
			Method: "POST", Path: "/api/apis/{id}/playground", Summary: "Call an API through a gateway, as oneself, as a key or as a policy; keys and policies need the role editor", Tag: "APIs", Role: rest.Viewer,
			Body: playBody{}, Reply: playAnswer{}, MaxBody: 2 * maxPlayBody, Within: playedWithin + 5*time.Second, Open: true,
			Wrong: []int{400, 404, 413, 415}, Events: true, Handle: s.play,
		},
	}
}

// probeBody is an address to be probed.
type probeBody struct {
	// Address to be probed, http or https.
	// Example: "https://countries.internal/graphql"
	URL string `json:"url"`
	// Header fields that are sent with each call, such as the credential of an upstream.
	Headers map[string]string `json:"headers,omitempty"`
}

func (s *Server) probe(ctx context.Context, c *rest.Call) (any, error) {
	var sent probeBody
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	found, err := s.schemas.Probe(ctx, strings.TrimSpace(sent.URL), sent.Headers)
	if errors.Is(err, context.DeadlineExceeded) {
		return schemas.Found{Kind: schemas.FoundPlain, Error: "it did not answer in time"}, nil
	}
	return found, err
}

// playBody is a call of the playground.
type playBody struct {
	// Caller of the call. Default: the user, with the credentials in headers.
	As playAs `json:"as"`
	// Whether the call is counted under rates, quotas and usage.
	Count bool `json:"count,omitempty"`
	AskedCall
}

// An AskedCall is a call to an API that an operator or a developer asks for, but for who
// calls.
type AskedCall struct {
	// Method of the call. Default: POST with a body, else GET.
	Method string `json:"method,omitempty"`
	// Path below the listen path of the API, with the query. Default: /.
	// Example: "/orders?limit=1"
	Path string `json:"path,omitempty"`
	// Header fields of the call.
	// Example: {"Content-Type": "application/json"}
	Headers map[string]string `json:"headers,omitempty"`
	// Body of the call as text, at most 1 MiB.
	Body string `json:"body,omitempty"`
	// Whether the call is a subscription: the answer is a text/event-stream of open (this answer
	// without a body), next (a result), and at the end error, complete or closed (with a reason),
	// unless the call is refused.
	Stream bool `json:"stream,omitempty"`
}

// playAs names the caller of a call of the playground. One member is set at most.
type playAs struct {
	// Whether the user calls, with the credentials in headers.
	Me bool `json:"me,omitempty"`
	// Hash of the key that calls.
	KeyHash string `json:"key_hash,omitempty"`
	// Id of the policy that calls, as a key with it alone would.
	Policy string `json:"policy,omitempty"`
}

// PlayedHeader is one header line of an answer.
type PlayedHeader struct {
	// Name of the header field.
	Name string `json:"name"`
	// Value of the header field; a field with several values has a line for each.
	Value string `json:"value"`
}

// playAnswer is the answer to a call of the playground.
type playAnswer struct {
	AskedAnswer
	// Milliseconds that the upstream took; 0: it was not called.
	UpstreamMS float64 `json:"upstream_ms"`
	// Whether the call was counted under rates, quotas and usage.
	Counted bool `json:"counted"`
	// Steps and outcome of the call, as POST /api/explain answers them.
	Explanation rest.Raw[ExplainReport] `json:"explanation"`
}

// An AskedAnswer is the answer to an AskedCall, but for its explanation.
type AskedAnswer struct {
	// Whether the request reached the API; if not, explanation says why.
	Sent bool `json:"sent"`
	// HTTP status of the answer.
	Status int `json:"status"`
	// Header lines of the answer, in their order.
	Headers []PlayedHeader `json:"headers"`
	// Body of the answer if it is text, at most 1 MiB.
	Body string `json:"body"`
	// Body of the answer in base64 if it is not text.
	Bytes []byte `json:"body_base64,omitempty"`
	// Whether the body was longer, or did not end in time.
	Cut bool `json:"cut"`
	// X-Request-Id of the answer.
	RequestID string `json:"request_id"`
	// Milliseconds that the call took, in the gateway and behind it.
	TookMS float64 `json:"took_ms"`
}

func (s *Server) play(ctx context.Context, c *rest.Call) (any, error) {
	var sent playBody
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if err := checkPlay(c, &sent); err != nil {
		return nil, err
	}
	if s.deps.Play == nil {
		return nil, rest.NotFound("This admin has no playground")
	}
	call, err := s.playedCall(ctx, c, &sent)
	if err != nil {
		return nil, err
	}
	if sent.Stream {
		return s.playStream(ctx, c, &sent, call)
	}
	select {
	case s.playing <- struct{}{}:
		defer func() { <-s.playing }()
	default:
		return nil, rest.Unavailable("Too many calls of the playground are being made; try again")
	}
	if err := s.auditPlay(ctx, c, call.API, &sent); err != nil {
		return nil, err
	}
	got, err := playWith(ctx, s.deps.Play, call)
	if err != nil {
		return nil, err
	}
	return showPlayed(got, sent.Count), nil
}

// playStream runs a subscription for an operator.
func (s *Server) playStream(ctx context.Context, c *rest.Call, sent *playBody, call *PlayedCall) (any, error) {
	if err := s.auditPlay(ctx, c, call.API, sent); err != nil {
		return nil, err
	}
	return s.stream(ctx, c, &streaming{by: s.deps.Play, call: call, of: s.streamed, show: func(got *PlayedAnswer) (any, error) {
		return showPlayed(got, sent.Count), nil
	}})
}

// playWith makes a call within its time.
func playWith(ctx context.Context, p Player, call *PlayedCall) (*PlayedAnswer, error) {
	within, cancel := context.WithTimeout(ctx, playedWithin)
	defer cancel()
	got, err := p.Play(within, call)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, notInTime()
	}
	return got, err
}

// showPlayed returns the answer to an operator.
func showPlayed(got *PlayedAnswer, counted bool) playAnswer {
	return playAnswer{
		AskedAnswer: showAnswer(got), UpstreamMS: float64(got.Upstream) / float64(time.Millisecond),
		Counted: counted && got.Sent, Explanation: rest.Raw[ExplainReport](got.Report),
	}
}

// showAnswer returns the part of an answer that everybody sees.
func showAnswer(got *PlayedAnswer) AskedAnswer {
	shown := AskedAnswer{
		Sent: got.Sent, Status: got.Status, Headers: got.Headers, Cut: got.Cut, RequestID: got.RequestID,
		TookMS: float64(got.Took) / float64(time.Millisecond),
	}
	if shown.Headers == nil {
		shown.Headers = []PlayedHeader{}
	}
	body := got.Body
	for n := 0; got.Cut && n < utf8.UTFMax && len(body) > 0 && !utf8.Valid(body); n++ {
		body = body[:len(body)-1] // a character that was cut through
	}
	if utf8.Valid(body) {
		shown.Body = string(body)
	} else {
		shown.Bytes = got.Body
	}
	return shown
}

// unplayable are headers that a call of the playground cannot have: they are about the
// connection, which it does not have.
var unplayable = []string{"Connection", "Upgrade", "Transfer-Encoding", "Content-Length", "Host", "Te", "Trailer", "Expect", "Keep-Alive"}

// checkPlay refuses calls that cannot be made, and those that the role does not permit.
func checkPlay(c *rest.Call, sent *playBody) error {
	problems := problemsOf(&sent.AskedCall)
	named := 0
	for _, is := range []bool{sent.As.Me, sent.As.KeyHash != "", sent.As.Policy != ""} {
		if is {
			named++
		}
	}
	if named > 1 {
		problems = append(problems, definition.Problem{Path: "as", Message: "must have one of me, key_hash and policy"})
	}
	if len(problems) > 0 {
		return &problems
	}
	if (sent.As.KeyHash != "" || sent.As.Policy != "") && c.Who.Role.BelowEditor() {
		return rest.Refuse(fasthttp.StatusForbidden, "access denied: calls as a key or as a policy need the role editor")
	}
	return nil
}

// problemsOf returns why a call cannot be made.
func problemsOf(sent *AskedCall) (problems definition.Problems) {
	add := func(path, message string) {
		problems = append(problems, definition.Problem{Path: path, Message: message})
	}
	if len(sent.Body) > maxPlayBody {
		add("body", fmt.Sprintf("must have at most %d bytes", maxPlayBody))
	}
	if sent.Path != "" && sent.Path[0] != '/' {
		add("path", "must begin with a slash; it follows the listen path")
	}
	for _, name := range unplayable {
		for given := range sent.Headers {
			if strings.EqualFold(name, given) {
				add("headers."+given, "is about the connection; leave it out")
			}
		}
	}
	return problems
}

// playedCall describes the call to the API that the path names.
func (s *Server) playedCall(ctx context.Context, c *rest.Call, sent *playBody) (*PlayedCall, error) {
	row, err := s.deps.Store.APIByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noAPI)
	}
	describe, err := describeCall(&row, c.Address(), &sent.AskedCall)
	if err != nil {
		return nil, err
	}
	switch {
	case sent.As.KeyHash != "":
		key, err := s.firstKey(ctx, c.Who.Org, []string{sent.As.KeyHash})
		if err != nil {
			return nil, rest.Missing(err, "The key that as.key_hash names does not exist")
		}
		describe["key_hash"] = key.KeyHash
	case sent.As.Policy != "":
		policy, err := s.deps.Store.PolicyByID(ctx, c.Who.Org, sent.As.Policy)
		if err != nil {
			return nil, rest.Missing(err, "The policy that as.policy names does not exist")
		}
		describe["policy"] = policy.ID
	}
	text, err := json.Marshal(describe)
	return &PlayedCall{Org: c.Who.Org, API: row.ID, Description: text, Counted: sent.Count}, err
}

// describeCall describes a call to an API, but for its caller.
func describeCall(row *store.API, client string, sent *AskedCall) (map[string]any, error) {
	if strings.ContainsAny(row.ListenPath, "{") {
		return nil, rest.BadRequest("The playground does not call APIs whose listen path has parameters")
	}
	describe := map[string]any{"method": sent.Method, "url": strings.TrimRight(row.ListenPath, "/") + "/" + strings.TrimPrefix(sent.Path, "/"), "client": client}
	if sent.Method == "" {
		describe["method"] = fasthttp.MethodGet
		if sent.Body != "" {
			describe["method"] = fasthttp.MethodPost
		}
	}
	headers := make(map[string]string, len(sent.Headers)+2)
	typed := false
	for name, value := range sent.Headers {
		if sent.Stream && strings.EqualFold(name, fasthttp.HeaderAccept) {
			continue
		}
		headers[name] = value
		typed = typed || strings.EqualFold(name, fasthttp.HeaderContentType)
	}
	if sent.Body != "" && !typed {
		headers[fasthttp.HeaderContentType] = "application/json"
	}
	if sent.Stream {
		headers[fasthttp.HeaderAccept] = "application/json, text/event-stream"
	}
	if row.Domain != "" {
		headers["Host"] = row.Domain
	}
	describe["headers"], describe["body"] = headers, sent.Body
	return describe, nil
}

// auditPlay records a call in the name of a key or a policy.
func (s *Server) auditPlay(ctx context.Context, c *rest.Call, api string, sent *playBody) error {
	entry := store.AuditEntry{Action: "played", Kind: "key", ID: s.deps.KeyOptions.Hasher.Shown(sent.As.KeyHash)}
	switch {
	case sent.As.Policy != "":
		entry.Kind, entry.ID = "policy", sent.As.Policy
	case sent.As.KeyHash == "":
		return nil
	}
	var err error
	entry.After, err = json.Marshal(map[string]any{"api_id": api, "method": sent.Method, "path": pathOf(sent.Path), "counted": sent.Count})
	if err != nil {
		return err
	}
	return s.deps.Store.InTx(ctx, func(tx *store.Tx) error { return tx.Audit(ctx, c.Author(c.Source()), entry) })
}

// pathOf returns a path without its query, which may hold secrets.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return rest.Truncate(path, rest.MaxText)
}
