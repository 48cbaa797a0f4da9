// Package upstream forwards exchanges to upstreams over pooled HTTP/1.1
// connections of its own.
//
// It stands in for fasthttp's client, which hands what an upstream sent on an
// idle connection to the next caller, accepts answers whose length can be read
// two ways, repeats requests that are not safe to repeat, and can either buffer
// every answer or stream every answer, but not choose by length.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/sluicegate/sluice/gateway/internalcall"
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// Config holds what applies to every API that does not set its own. All of it
// but Trusted, MaxConnWait, MaxWaiting, Retries, Upgrades, CAFile, Log, TimeoutSetting, Certificates and PlainIO is required.
type Config struct {
	Trusted         []netip.Prefix // proxies whose X-Forwarded-* are believed
	DialTimeout     time.Duration  // to connect, look-up and TLS handshake included
	ResponseTimeout time.Duration  // from sending a request to the end of its answer's head; then for each piece of the body
	MaxConns        int            // to one upstream address
	MaxConnWait     time.Duration  // for a free connection when all are busy; 0: none
	MaxWaiting      int            // who wait for one upstream address at the same time; 0: any number
	IdleTimeout     time.Duration  // how long an unused connection is kept
	Retries         int            // further tries of a request whose reused connection died before the answer; 0: none
	Upgrades        bool           // clients and upstreams may leave HTTP for another protocol, such as WebSocket
	TunnelIdle      time.Duration  // longest silence of both once they have; required with Upgrades
	CAFile          string         // PEM roots in place of the system's; "" for those
	Log             *slog.Logger   // for failed calls, one line a second for each upstream; nil: none

	// TimeoutSetting names where the response timeout of a definition comes from; "":
	// proxy.transport.response_timeout.
	TimeoutSetting string

	Certificates Certificates // that upstream_certificates name by their ids; nil: there are none

	// PlainIO turns raw system calls off, which is how connections work where
	// there are none.
	PlainIO bool
}

// Given is what identities refer to.
func (c *Config) Given() Given {
	return Given{CAFile: c.CAFile, Certificates: c.Certificates}
}

// forward is the stage that calls one API's upstream.
type forward struct {
	target   match.Target
	identity [32]byte // of what TLS shows and trusts
	version  string   // what follows the target: the version, and the Host line
	pool     *pool
	trusted  []netip.Prefix
	join     match.JoinOptions
	log      failureLog

	dialTimeout time.Duration
	timeout     time.Duration // for the head of an answer
	retries     int

	dialSetting, timeoutSetting string // that dialTimeout and timeout come from

	upgrade    bool // protocols other than HTTP may be agreed on
	tunnelIdle time.Duration

	strip        bool // the listen path is taken off
	preserveHost bool
}

// Compile makes the stage that forwards to def's target over connections from
// pools, or hands over to the API that it names. The error names the field that is
// wrong.
func Compile(def *definition.API, pools *Pools, conf Config) (pipeline.Stage, error) {
	if definition.IsInternal(def.Proxy.TargetURL) {
		stage, err := internalcall.Compile(def, def.Proxy.TargetURL)
		if err != nil {
			return nil, fmt.Errorf("proxy.target_url: %w", err)
		}
		return stage, nil
	}
	target, err := match.CompileTarget(def.Proxy.TargetURL)
	if err != nil {
		return nil, fmt.Errorf("proxy.target_url: %w", err)
	}
	if err := reachable.Check(target.Address); err != nil {
		return nil, fmt.Errorf("proxy.target_url: %w", err)
	}
	p, identity, err := pools.connections(def, target, &conf)
	if err != nil {
		return nil, err
	}
	own := transportOf(def)
	f := &forward{
		target: *target, identity: identity, version: p.versionFor(target.Host), pool: p, trusted: conf.Trusted,
		join:        match.JoinOptions{DisableStripSlash: def.Proxy.DisableStripSlash},
		log:         failureLog{log: conf.Log, api: def.ID, address: target.Address},
		dialTimeout: seconds(own.DialTimeout, conf.DialTimeout),
		timeout:     seconds(own.ResponseTimeout, conf.ResponseTimeout),
		retries:     conf.Retries,
		// Operations in a tunnel would be past what governs those of GraphQL.
		upgrade: conf.Upgrades && !def.IsGraphQL(), tunnelIdle: conf.TunnelIdle,
		strip: def.Proxy.StripListenPath, preserveHost: def.Proxy.PreserveHostHeader,
	}
	if f.dialSetting = "upstream.dial_timeout"; own.DialTimeout > 0 {
		f.dialSetting = "proxy.transport.dial_timeout"
	}
	if f.timeoutSetting = "upstream.response_timeout"; own.ResponseTimeout > 0 {
		f.timeoutSetting = cmp.Or(conf.TimeoutSetting, "proxy.transport.response_timeout")
	}
	return f, nil
}

// seconds is a definition's own duration, or the default when it is 0.
func seconds(own float64, otherwise time.Duration) time.Duration {
	if own <= 0 {
		return otherwise
	}
	return max(time.Duration(own*float64(time.Second)), time.Millisecond)
}

// Handle sends the exchange's request upstream and makes ex.Answer of what
// comes back. Of a dry one it leaves in ex.Buf what would be sent.
func (f *forward) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	ex.Upstream.Address = f.target.Address
	if err := readLimited(ex); err != nil {
		return ex.Reject(rejectionFor(clientError{err}))
	}
	req, upgrade, err := f.appendRequest(ex.Buf[:0], ex)
	ex.Buf = req
	switch {
	case err != nil:
	case ex.IsDry():
		err = imagine(ex)
	case f.joins(ex):
	default:
		err = f.call(ex, upgrade)
	}
	if err != nil {
		r := rejectionFor(err)
		if !ex.IsDry() {
			f.log.report(r.Reason, err)
		}
		return ex.Reject(r)
	}
	return pipeline.Answered
}

// readLimited reads a body with a small limit before anything is sent.
func readLimited(ex *pipeline.Exchange) error {
	if _, streamed := bodyOf(ex); !streamed || ex.IsDry() {
		return nil
	}
	return ex.Call.ReadLimited()
}

// imagine reads the body that would go upstream: it may turn out too large.
func imagine(ex *pipeline.Exchange) error {
	if _, streamed := bodyOf(ex); streamed {
		if _, err := io.Copy(io.Discard, ex.Call.Stream); err != nil {
			return clientError{err}
		}
	}
	return nil
}

// call tries connections until one gives an answer, or the request must not be
// sent again.
func (f *forward) call(ex *pipeline.Exchange, upgrade []byte) error {
	t := try{f: f, ex: ex, upgrade: upgrade, lines: len(ex.Answer.Lines), before: ex.Upstream.Duration, start: f.pool.now()}
	ex.Upstream.Failed = nil
	if err := t.send(); err != nil {
		t.took(f.pool.now())
		ex.Upstream.Failed = f.named(err)
	}
	return ex.Upstream.Failed
}

// send is call without what is noted of a failure.
func (t *try) send() error {
	f, ex := t.f, t.ex
	c, err := f.pool.takeIdle(), error(nil)
	t.begin(t.start)
	if c == nil {
		c, err = f.pool.take(context.Background(), f.dialTimeout)
		t.begin(f.pool.now())
	}
	stale := 0
	for sent := false; err == nil; {
		if err = t.run(c); err == nil {
			return nil
		}
		fresh := false
		switch {
		case err == errStale && c.reused:
			stale++
			fresh = stale >= maxStale
		case t.repeatable(c, err):
			sent = true
			ex.Upstream.Retries++
			fresh = !isDisconnect(err) || int(ex.Upstream.Retries) >= f.retries
		default:
			c.drop()
			return err
		}
		c, err = f.pool.replace(context.Background(), c, fresh, f.dialTimeout)
		if !sent {
			t.begin(f.pool.now())
		}
	}
	return err
}

// named adds to a time-out which setting it comes from.
func (f *forward) named(err error) error {
	timeout, ok := errors.AsType[net.Error](err)
	if !ok || !timeout.Timeout() || isClientError(err) {
		return err
	}
	if _, dialled := errors.AsType[dialError](err); dialled || isHandshake(err) {
		return timeoutError{f.dialSetting, f.dialTimeout, err}
	}
	return timeoutError{f.timeoutSetting, f.timeout, err}
}

func isHandshake(err error) bool {
	_, ok := errors.AsType[handshakeError](err)
	return ok
}

// maxStale is how many pooled connections may turn out dead before a new one is
// made rather than another of them tried.
const maxStale = 8

// repeatable reports whether a failed request may be sent once more: its method is
// idempotent, its body is still at hand, and the reused connection ended before a
// byte of an answer.
func (t *try) repeatable(c *conn, err error) bool {
	return c.reused && !c.answered && isDisconnect(err) && t.upload == nil &&
		int(t.ex.Upstream.Retries) < t.f.retries && isIdempotent(methodOf(t.ex))
}

// isIdempotent lists RFC 9110 section 9.2.2's methods.
func isIdempotent(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}
