package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/usage"
	contract "github.com/sluicegate/sluice/internal/usage"
)

// shippedUsage is the counts of calls of a gateway that has an admin.
type shippedUsage struct {
	calls    *usage.Calls
	refusals *explain.Handover
	samples  *explain.Samples // nil: requests are not recorded
	sender   *usage.Sender
}

// newShippedUsage returns nil for a gateway without an admin.
func newShippedUsage(p *nodeParts) *shippedUsage {
	if p.adminURL == "" {
		return nil
	}
	to := p.usageTo
	if to == nil {
		to = usage.NewRemote(p.adminURL, p.token, p.admin)
	}
	u := &shippedUsage{calls: usage.NewCalls(), refusals: explain.NewHandover()}
	u.samples = explain.NewSamples(explain.SampleOptions{Rate: p.cfg.Gateway.SamplesPerSecond, Headers: p.cfg.Gateway.SampleHeaders})
	u.sender = usage.NewSender(usage.SenderOptions{
		Calls: u.calls, Refusals: u.refusals, Samples: u.samples, To: to, Gateway: gatewayName(p), Every: p.cfg.Usage.Flush, Log: p.log,
	})
	return u
}

// gatewayName returns the name by which the admin lists the gateway: that of the host, and
// where the gateway listens, such as vm:8080 or vm@127.0.0.1:8080.
func gatewayName(p *nodeParts) string {
	host, err := os.Hostname()
	if err != nil {
		host = "gateway"
	}
	return nameOf(host, cmp.Or(p.cfg.Gateway.Listen, p.cfg.Gateway.TLS.Listen))
}

// nameOf joins a host and where a gateway listens on it.
func nameOf(host, listen string) string {
	if listen == "" || strings.HasPrefix(listen, ":") {
		return host + listen
	}
	return host + "@" + listen
}

// finishTimeout bounds how long a stop waits until the last counts are sent.
const finishTimeout = 5 * time.Second

// finish sends what is left, once there is no more traffic.
func (u *shippedUsage) finish() {
	if u == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishTimeout)
	defer cancel()
	u.sender.Finish(ctx)
}

// localAdmin receives usage for the admin of this process, which is created after
// the gateway.
type localAdmin struct{ server atomic.Pointer[admin.Server] }

var errNoAdminYet = errors.New("the admin has not started yet")

// Receive implements usage.Receiver without HTTP.
func (l *localAdmin) Receive(ctx context.Context, batch *contract.Batch) (contract.Receipt, error) {
	server := l.server.Load()
	if server == nil {
		return contract.Receipt{}, errNoAdminYet
	}
	refused, err := server.ReceiveUsage(ctx, batch)
	if fault, ok := errors.AsType[*rest.Fault](err); ok {
		return refused, &usage.RefusedError{Cause: fault}
	}
	return refused, err
}
