package app

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/valyala/fasthttp"
)

// sideLimits are the limits of ports that are not for traffic.
var sideLimits = wire.Config{
	MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 8 << 20,
	ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 75 * time.Second, MaxConns: 1000,
}

// serveSide serves the gateway API and telemetry if they have their own ports.
func (n *node) serveSide(t *tasks) {
	if n.controlLn != nil {
		n.serveOn(t, "gateway API", n.controlLn, n.control.Handle)
	}
	if n.telemetryLn != nil {
		n.serveOn(t, "telemetry", n.telemetryLn, n.telemetry())
	}
}

func (n *node) serveOn(t *tasks, name string, ln net.Listener, h fasthttp.RequestHandler) {
	s := wire.New(sideLimits, side(h), slog.NewLogLogger(n.log.Handler(), slog.LevelWarn))
	n.side = append(n.side, s)
	serve := func() error { return s.Serve(ln) }
	if over, is := ln.(*certs.Secured); is {
		plain, conf := over.Split()
		secure := &wire.Secure{
			Config: conf.Config, Timeout: sideLimits.ReadTimeout, Pending: sideLimits.MaxConns, Failed: func(peer netip.Addr, err error) { conf.Failed(peer, err) },
		}
		serve = func() error { return s.ServeTLS(plain, secure) }
	}
	t.start(name, func() error {
		if err := serve(); !errors.Is(err, wire.ErrStopped) {
			return err
		}
		return nil
	})
}

// side serves a fasthttp handler on connections with the strict framing of traffic.
type side fasthttp.RequestHandler

// Handle implements wire.Handler.
func (h side) Handle(call *wire.Call) { h(call.Ctx()) }

// Refuse implements wire.Handler.
func (side) Refuse(call *wire.Call, fault *wire.Fault) {
	body, _ := json.Marshal(struct { // a struct of strings always encodes
		Status  string `json:"status"`
		Message string `json:"message"`
	}{"error", fault.Text})
	resp := &call.Ctx().Response
	resp.SetStatusCode(fault.Status)
	resp.Header.SetContentType("application/json")
	resp.SetBodyRaw(body)
}
