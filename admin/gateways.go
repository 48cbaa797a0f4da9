package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/distribution"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

func (s *Server) gatewayRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/gateways", Summary: "List gateways and what they serve", Tag: "Gateways", Role: rest.Viewer,
			Reply: gatewayList{}, Handle: s.listGateways,
		},
		{
			Method: "DELETE", Path: "/api/gateways/{name}", Summary: "Forget a gateway that serves no longer; one that does reports again", Tag: "Gateways", Role: rest.Admin, Gateway: true,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.forgetGateway,
		},
		{
			Method: "GET", Path: "/api/gateway/bundle", Summary: "Get everything that a gateway serves, once it differs from If-None-Match", Tag: "Gateways", Role: rest.Gateway, Waits: true,
			Query: []string{"wait"}, Reply: definition.Bundle{}, Wrong: []int{304, 400}, Handle: s.getBundle,
		},
		{
			Method: "POST", Path: "/api/gateway/refusals", Summary: "Hand over the record of a refused request that an admin looks for", Tag: "Gateways", Role: rest.Gateway,
			Body: foundRefusal{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Handle: s.takeRefusal,
		},
		{
			Method: "POST", Path: "/api/gateway/reload", Summary: "Have every gateway take its configuration anew", Tag: "Gateways", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Handle: s.reload,
		},
	}
}

// maxWait is the longest that a gateway may wait for a change in one call.
const maxWait = time.Minute

// silentAfter is how long after its last report a gateway is no longer counted.
// Gateways poll every 30 s.
const silentAfter = 2 * time.Minute

// gatewayStatus is the status that a gateway reported last.
type gatewayStatus struct {
	// Name of the gateway (setting gateway.name).
	Name string `json:"name"`
	// Group of the gateway (setting gateway.group); a reload of a group reaches all its gateways.
	Group string `json:"group"`
	// Version of the gateway's program.
	Version string `json:"version"`
	// Revision of the configuration that the gateway serves; empty: none yet.
	Revision string `json:"revision"`
	// Reason for which the gateway does not serve the newest revision as it is written; empty: it
	// does.
	Error string `json:"error"`
	// IP address that the gateway calls from.
	IP string `json:"ip"`
	// Tags of the gateway, which serves the APIs without tags and those with one of these.
	Tags []string `json:"tags"`
	// Time of the gateway's last report.
	SeenAt time.Time `json:"seen_at"`
	// Whether the gateway reported in the last two minutes that it serves the newest revision without
	// an error.
	UpToDate bool `json:"up_to_date"`
}

// gatewayList holds the gateways that reported within a day.
type gatewayList struct {
	// Gateways of all organisations that reported within a day.
	Gateways []gatewayStatus `json:"gateways"`
	// Revision of the configuration that gateways should serve.
	Revision string `json:"revision"`
}

func (s *Server) listGateways(ctx context.Context, _ *rest.Call) (any, error) {
	state, err := s.deps.Store.State(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.deps.Store.ListGateways(ctx)
	if err != nil {
		return nil, err
	}
	list := gatewayList{Gateways: make([]gatewayStatus, 0, len(rows)), Revision: strconv.FormatInt(state.Revision, 10)}
	for _, row := range rows {
		list.Gateways = append(list.Gateways, gatewayStatus{
			Name: row.Name, Group: row.GroupName, Version: row.Build, Revision: row.Revision, Error: row.Error,
			IP: row.IP, SeenAt: row.SeenAt, Tags: definition.SplitTags(row.Tags),
			UpToDate: row.Revision == list.Revision && row.Error == "" && time.Since(row.SeenAt) < silentAfter,
		})
	}
	return list, nil
}

// forgetGateway forgets a gateway, which says so itself when it stops.
// forgetGateway is for admins of the first organisation and for gateways: gateways serve
// all organisations.
func (s *Server) forgetGateway(ctx context.Context, c *rest.Call) (any, error) {
	switch may, err := s.actsForAll(ctx, c); {
	case err != nil:
		return nil, err
	case !may:
		return nil, rest.Refuse(fasthttp.StatusForbidden, "access denied: only admins of the first organisation and gateways forget gateways")
	}
	if err := s.gateways.Forget(ctx, c.Param("name")); err != nil {
		return nil, rest.Missing(err, "No gateway of this name has reported")
	}
	return rest.Done("Gateway forgotten", nil), nil
}

// getBundle answers with the configuration: at once, or, if the gateway has it already,
// as soon as it changes.
func (s *Server) getBundle(_ context.Context, c *rest.Call) (any, error) {
	wait, err := parseWait(c)
	if err != nil {
		return nil, err
	}
	status := statusOf(c)
	s.gateways.RecordStatus(status, time.Now())
	s.noteFormerToken(c, status.Name)
	have := strings.TrimPrefix(string(c.HTTP.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), "W/")
	// Not the context of the call, which bounds work: this is waiting.
	ctx, cancel := context.WithTimeout(s.lifetime, wait)
	seen := strings.Split(string(c.HTTP.Request.Header.Peek("X-Sluice-Asked")), ",")
	stop := s.gateways.Interrupt(seen, cancel)
	b := s.gateways.Next(ctx, have, tagsOf(c))
	stop()
	cancel()
	c.HTTP.Response.Header.Set("X-Sluice-Gateways", strconv.Itoa(s.gateways.Gateways()))
	if names := s.gateways.Asked(seen); len(names) > 0 {
		c.HTTP.Response.Header.Set("X-Sluice-Asked", strings.Join(names, ","))
	}
	switch {
	case b == nil:
		return nil, rest.DatabaseAway("The configuration was not read from the database yet; try again")
	default:
		b.Answer(c.HTTP, have)
	}
	return nil, nil
}

// noteFormerToken logs, once for each gateway, that it authenticates with the former
// token: once no gateway does, gateway.former_token can be removed.
func (s *Server) noteFormerToken(c *rest.Call, gateway string) {
	if !s.deps.FormerGatewayToken.Equal(rest.CredentialOf(c.HTTP)) {
		return
	}
	if s.formerUsers.add(gateway) {
		s.log.Warn("a gateway still uses gateway.former_token", "gateway", gateway, "address", c.Address())
	}
}

// names is a set of names. It is safe for concurrent use.
type names struct {
	mu    sync.Mutex
	known map[string]bool
}

// maxNames bounds a set.
const maxNames = 1000

// add reports whether the name is new. A set that is full takes no more.
func (n *names) add(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[name] || len(n.known) >= maxNames {
		return false
	}
	if n.known == nil {
		n.known = make(map[string]bool)
	}
	n.known[name] = true
	return true
}

// foundRefusal is the record of a refused request.
type foundRefusal struct {
	// X-Request-Id of the request that was asked for.
	ID string `json:"id"`
	// Record of the request.
	Refusal rest.Raw[ExplainRefusal] `json:"refusal"`
}

// takeRefusal passes the record of a refused request on to the user who asked for it.
func (s *Server) takeRefusal(ctx context.Context, c *rest.Call) (any, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	var found foundRefusal
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, rest.BadRequest("Request body malformed: " + err.Error())
	}
	if found.ID == "" || len(found.Refusal) == 0 {
		return nil, rest.BadRequest("id and refusal are required")
	}
	if err := s.gateways.Found(ctx, found.ID, json.RawMessage(found.Refusal)); err != nil {
		return nil, err
	}
	return rest.Done("Record taken", nil), nil
}

// Refusal asks all gateways for the record of a refused request, as JSON. It returns nil
// when none has answered in time.
func (s *Server) Refusal(ctx context.Context, id string) (json.RawMessage, error) {
	return s.gateways.Refusal(ctx, id)
}

// tagsHeader has the tags of a gateway, as definition.JoinTags writes them.
const tagsHeader = "X-Sluice-Tags"

// tagsOf returns the tags of a gateway that polls, nil if it knows nothing of tags: then
// it gets every API.
func tagsOf(c *rest.Call) []string {
	values := c.HTTP.Request.Header.PeekAll(tagsHeader)
	if len(values) == 0 {
		return nil
	}
	return definition.SplitTags(string(values[0]))
}

// getKeyChanges answers with the keys that changed after a position: at once if there are
// some, or as soon as there are.
func (s *Server) getKeyChanges(_ context.Context, c *rest.Call) (any, error) {
	wait, err := parseWait(c)
	if err != nil {
		return nil, err
	}
	have, err := store.ParseKeyPosition(c.Query("position"))
	if err != nil {
		return nil, rest.BadRequest(err.Error())
	}
	// Not the context of the call, which bounds work: this is waiting.
	ctx, cancel := context.WithTimeout(s.lifetime, wait)
	defer cancel()
	changes, err := s.gateways.KeyChanges(ctx, statusOf(c).Name, have)
	if err != nil {
		return nil, err
	}
	if s.deps.Seal != nil {
		changes.SealKeys = s.deps.Seal.Keys()
	}
	c.HTTP.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	return changes, nil
}

// syncWithin bounds a comparison of the key store with the database. A million keys take
// about 20 s.
const syncWithin = 50 * time.Second

// syncKeys makes the key store hold what the database has.
func (s *Server) syncKeys(ctx context.Context, c *rest.Call) (any, error) {
	found, err := s.gateways.Sync(ctx)
	switch {
	case errors.Is(err, distribution.ErrNotShared):
		return nil, rest.BadRequest("There is no key store to compare: the keys are in the admin's own process")
	case errors.Is(err, keystore.ErrUnavailable):
		s.log.Warn("the key store was not compared with the database", "err", err)
		return nil, rest.Unavailable("The key store does not answer; try again")
	case err != nil:
		return nil, err
	}
	s.log.Info("key store compared with the database on request", "by", c.Who.Name)
	return found, nil
}

// parseWait returns how long a gateway is ready to wait.
func parseWait(c *rest.Call) (time.Duration, error) {
	text := c.Query("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, rest.BadRequest(fmt.Sprintf("wait must be a duration such as 30s, not %.40q", text))
	}
	return min(wait, maxWait), nil
}

// reload makes every gateway of the installation reload its configuration.
func (s *Server) reload(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.deps.Store.Reload(ctx, c.Author(c.Source())); err != nil {
		return nil, err
	}
	return rest.Done("Reload announced", nil), nil
}

// forgetAnswers makes every gateway delete its cached answers of an API.
func (s *Server) forgetAnswers(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.locate(ctx, c, store.APIObject, c.Param("id")); err != nil {
		return nil, err
	}
	if err := s.deps.Store.ForgetAnswers(ctx, c.Author(c.Source()), c.Param("id")); err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	return rest.Done("Gateways forget the answers they keep", nil), nil
}

// statusOf returns the status that a gateway reports with its poll.
func statusOf(c *rest.Call) store.Gateway {
	header := func(name string, size int) string {
		text := rest.Truncate(string(c.HTTP.Request.Header.Peek(name)), size)
		if !rest.Printable(text) {
			return ""
		}
		return text
	}
	g := store.Gateway{
		Name: header("X-Sluice-Gateway", 128), GroupName: header("X-Sluice-Group", 128), Build: header("X-Sluice-Version", 128),
		Revision: header("X-Sluice-Revision", 64), Error: header("X-Sluice-Error", rest.MaxText), IP: c.Address(),
		Tags: header(tagsHeader, rest.MaxText),
	}
	if failed := header("X-Sluice-Failed", 16); failed != "" && failed != "0" {
		g.Error = rest.Truncate(failed+" not served as written: "+g.Error, rest.MaxText)
	}
	return g
}
