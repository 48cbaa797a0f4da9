package admin

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
)

// quietAfter is when a gateway that polls every 30 s is no longer counted.
const quietAfter = 2 * time.Minute

// rewriteAfter is how old the record of a gateway may get that says the same
// with every poll.
const rewriteAfter = 20 * time.Second

// maxFleet bounds how many gateways are remembered between two writes.
const maxFleet = 10_000

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

// A fleet collects what gateways say, so that a poll costs no write.
type fleet struct {
	mu      sync.Mutex
	known   map[string]heardOf
	pending map[string]store.Gateway
}

// heardOf is what was last handed on about a gateway.
type heardOf struct {
	status store.Gateway
	at     time.Time
}

func newFleet() *fleet {
	return &fleet{known: make(map[string]heardOf), pending: make(map[string]store.Gateway)}
}

// heard notes what a gateway says of itself with its poll.
func (f *fleet) heard(c *call, now time.Time) {
	header := func(name string, size int) string { return truncate(string(c.http.Request.Header.Peek(name)), size) }
	g := store.Gateway{
		Name: header("X-Sluice-Gateway", 128), GroupName: header("X-Sluice-Group", 128), Build: header("X-Sluice-Version", 128),
		Revision: header("X-Sluice-Revision", 64), Error: header("X-Sluice-Error", maxText), IP: c.address(),
	}
	if failed := header("X-Sluice-Failed", 16); failed != "" && failed != "0" {
		g.Error = truncate(failed+" not served as written: "+g.Error, maxText)
	}
	if g.Name == "" || !printable(g.Name+g.GroupName+g.Build+g.Revision+g.Error) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.known[g.Name]
	if known && last.status == g && now.Sub(last.at) < rewriteAfter {
		return
	}
	if !known && len(f.known) >= maxFleet {
		clear(f.known)
	}
	f.known[g.Name] = heardOf{status: g, at: now}
	if len(f.pending) < maxFleet {
		f.pending[g.Name] = g
	}
}

// take returns what is to be written, and forgets it.
func (f *fleet) take() []store.Gateway {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]store.Gateway, 0, len(f.pending))
	for _, g := range f.pending {
		list = append(list, g)
	}
	clear(f.pending)
	return list
}

// reportFleet writes what gateways say once a second, and forgets silent ones.
func (s *Server) reportFleet() {
	for n := 0; pause(s.lifetime, time.Second); n++ {
		for _, g := range s.fleet.take() {
			s.putGateway(g)
		}
		if n%600 == 60 {
			s.dropGateways()
		}
	}
}

func (s *Server) putGateway(g store.Gateway) {
	ctx, cancel := context.WithTimeout(s.lifetime, answerWithin)
	defer cancel()
	if err := s.deps.Store.PutGateway(ctx, g); err != nil && s.lifetime.Err() == nil {
		// The next poll of the gateway says it again.
		s.log.Warn("what a gateway said was not recorded", "gateway", g.Name, "err", err)
	}
}

func (s *Server) dropGateways() {
	ctx, cancel := context.WithTimeout(s.lifetime, answerWithin)
	defer cancel()
	if err := s.deps.Store.DropGateways(ctx); err != nil && s.lifetime.Err() == nil {
		s.log.Warn("gateways that are long silent were not forgotten", "err", err)
	}
}

func (s *Server) listGateways(ctx context.Context, _ *call) (any, error) {
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
