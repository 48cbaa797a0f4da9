package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// maxWait is the longest that a gateway may wait for a change in one call.
const maxWait = time.Minute

// quietAfter is when a gateway that polls every 30 s is no longer counted.
const quietAfter = 2 * time.Minute

// gatewayStatus is what a gateway last said of itself.
type gatewayStatus struct {
	Name     string    `json:"name"`
	Group    string    `json:"group"`
	Version  string    `json:"version"`
	Revision string    `json:"revision" doc:"that it serves"`
	Error    string    `json:"error" doc:"why it does not serve the newest as written"`
	IP       string    `json:"ip"`
	SeenAt   time.Time `json:"seen_at"`
	UpToDate bool      `json:"up_to_date"`
}

// gatewayList is every gateway heard of within a day.
type gatewayList struct {
	Gateways []gatewayStatus `json:"gateways"`
	Revision string          `json:"revision" doc:"that they should serve"`
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
			IP: row.IP, SeenAt: row.SeenAt,
			UpToDate: row.Revision == list.Revision && row.Error == "" && time.Since(row.SeenAt) < quietAfter,
		})
	}
	return list, nil
}

// getBundle hands the configuration to a gateway, at once or, when the gateway
// has it already, as soon as it changes.
func (s *Server) getBundle(_ context.Context, c *rest.Call) (any, error) {
	wait, err := waitOf(c)
	if err != nil {
		return nil, err
	}
	s.supply.Heard(reportOf(c), time.Now())
	have := strings.TrimPrefix(string(c.HTTP.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), "W/")
	// Not the call's own context: its time is for work, and this is waiting.
	ctx, cancel := context.WithTimeout(s.lifetime, wait)
	b := s.supply.Next(ctx, have)
	cancel()
	c.HTTP.Response.Header.Set("X-Sluice-Gateways", strconv.Itoa(s.supply.Gateways()))
	switch {
	case b == nil:
		return nil, rest.Unavailable("The configuration was not read from the database yet; try again")
	default:
		b.Answer(c.HTTP, have)
	}
	return nil, nil
}

// wait reads how long a gateway is ready to wait.
func waitOf(c *rest.Call) (time.Duration, error) {
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

// reload has every gateway of the installation take its configuration anew.
func (s *Server) reload(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.deps.Store.Reload(ctx, c.Author(c.Source())); err != nil {
		return nil, err
	}
	return rest.Done("Reload announced", nil), nil
}

// forgetAnswers has every gateway forget the answers that it keeps for an API.
func (s *Server) forgetAnswers(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.deps.Store.ForgetAnswers(ctx, c.Author(c.Source()), c.Param("id")); err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	return rest.Done("Gateways forget the answers they keep", nil), nil
}

// report is what a gateway says of itself with its poll.
func reportOf(c *rest.Call) store.Gateway {
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
	}
	if failed := header("X-Sluice-Failed", 16); failed != "" && failed != "0" {
		g.Error = rest.Truncate(failed+" not served as written: "+g.Error, rest.MaxText)
	}
	return g
}
