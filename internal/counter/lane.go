package counter

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/valkey-io/valkey-go"
)

// Waits between two probes of a store that is away.
const (
	probeFirst = 50 * time.Millisecond
	probeMost  = time.Second
)

var (
	// ErrBusy says that too many calls wait for the store. The call was not counted.
	ErrBusy = errors.New("too many calls wait for the counter store")

	errConnecting = errors.New("not connected yet")
	errClosed     = errors.New("counter was closed")
	errNewConn    = errors.New("connection was lost")
)

// An outage is why a call got no answer from the store.
type outage struct {
	cause   error
	unknown bool // the call was sent and may have been counted
}

var busy = &outage{cause: ErrBusy}

func (o *outage) Error() string { return "ask counter store: " + o.cause.Error() }

func (o *outage) Unwrap() error { return o.cause }

// Is makes every outage an ErrUnavailable without wrapping it for each caller.
func (o *outage) Is(target error) bool { return target == ErrUnavailable }

// unsent returns the same outage for calls that were not sent.
func (o *outage) unsent() *outage { return &outage{cause: o.cause} }

// outageOf classifies an error of the client. What the store refused it did not
// run, and what could not be dialled was not sent; the rest is unknown.
func outageOf(err error) *outage {
	if _, refused := valkey.IsValkeyErr(err); refused || errors.Is(err, valkey.ErrClosing) {
		return &outage{cause: err}
	}
	op, network := errors.AsType[*net.OpError](err)
	return &outage{cause: err, unknown: !network || op.Op != "dial"}
}

// A lane is a queue of batches with a circuit breaker of its own. A store of one
// node has one lane; a cluster has one for each range of hash slots, so that a node
// that is away or slow delays no other.
type lane struct {
	v      *Valkey
	epochs []string // keys that show whether the store lost its data

	mu       sync.Mutex
	inFlight int      // batches
	open     *batch   // one of those in flight that is not sent yet; nil if all are
	queue    []*batch // that wait; callers join the last one
	down     *outage  // why the lane is shut; nil if it is not
	suspect  string   // a key that failed last

	wake      chan struct{} // requests maintain to probe; holds one
	lastEpoch string        // what the epochs were last; used by maintain only
	sent      atomic.Uint64 // batches
	quotas    *quotaCache
	standby   *standby
}

// shut makes every further call an outage until a probe succeeds. The caller holds
// l.mu.
func (l *lane) shut(o *outage) {
	if !l.isClosed() {
		l.down = o.unsent() // the latest cause is the most useful one
	}
	l.requestProbe()
}

// isClosed reports whether the lane was shut for good. The caller holds l.mu.
func (l *lane) isClosed() bool { return l.down != nil && l.down.cause == errClosed }

// trip shuts the lane from outside a batch.
func (l *lane) trip(o *outage) {
	l.mu.Lock()
	l.shut(o)
	l.mu.Unlock()
}

// reopen lets calls through again, unless the counter was closed.
func (l *lane) reopen() {
	l.standby.clear()
	l.mu.Lock()
	if !l.isClosed() {
		l.down = nil
	}
	l.mu.Unlock()
	l.v.report()
}

func (l *lane) isDown() *outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *lane) requestProbe() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// maintain probes the store whenever something went wrong, until it answers. It is
// one probe per lane, not its callers, that finds out that the store is back.
func (l *lane) maintain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for wait := probeFirst; ; wait = min(2*wait, probeMost) {
			err := l.revive(ctx)
			if err == nil && !l.standby.hasDebts() {
				break
			}
			if err != nil {
				l.trip(outageOf(err))
				l.v.report()
			}
			if sleep.For(ctx, jitter(wait)) != nil {
				return
			}
		}
	}
}

// revive reconciles the store with what was admitted without it, and then lets
// calls through.
func (l *lane) revive(ctx context.Context) error {
	if err := l.reconcile(ctx); err != nil {
		return err
	}
	l.reopen()
	return nil
}

// probe reads the lane's epochs and creates those that do not exist. It is a write,
// so that a store that is read-only or out of memory does not pass. It also tries
// the hash slot that failed last, which may be on another node.
func (l *lane) probe(ctx context.Context, c valkey.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.v.timeout)
	defer cancel()
	l.mu.Lock()
	suspect := l.suspect
	l.mu.Unlock()
	if l.v.clustered && suspect != "" {
		key := "sluice:counter:probe:{" + hashTag(suspect) + "}"
		if err := c.Do(ctx, c.B().Set().Key(key).Value("1").PxMilliseconds(1000).Build()).Error(); err != nil {
			return "", err
		}
	}
	var epoch strings.Builder
	for _, key := range l.epochs {
		fresh := newEpoch()
		old, err := c.Do(ctx, c.B().Set().Key(key).Value(fresh).Nx().Get().Build()).ToString()
		if valkey.IsValkeyNil(err) {
			old, err = fresh, nil
		}
		if err != nil {
			return "", err
		}
		epoch.WriteString(old)
	}
	return epoch.String(), nil
}

// jitter keeps gateways that lost the store together from probing together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}
