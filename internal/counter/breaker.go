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

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/counter/exchange"
	"github.com/sluicegate/sluice/internal/counter/recall"
	"github.com/sluicegate/sluice/internal/counter/slots"
	"github.com/sluicegate/sluice/internal/counter/tempo"
)

// Pauses between two probes of a store that is away.
const (
	probeFirst = 50 * time.Millisecond
	probeMost  = time.Second
)

var (
	// ErrBusy says that more calls wait for the store than may. The call was
	// not counted.
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

// Is makes every outage an ErrUnavailable, without wrapping it for each caller.
func (o *outage) Is(target error) bool { return target == ErrUnavailable }

// unsent is the same outage for calls that stayed here.
func (o *outage) unsent() *outage { return &outage{cause: o.cause} }

// outageOf sorts an error of the client. What the store refused it did not run,
// and what could not be dialled was not sent; of the rest nobody knows.
func outageOf(err error) *outage {
	_, refused := valkey.IsValkeyErr(err)
	if _, refusal := errors.AsType[exchange.Refusal](err); refused || refusal || errors.Is(err, valkey.ErrClosing) {
		return &outage{cause: err}
	}
	op, network := errors.AsType[*net.OpError](err)
	return &outage{cause: err, unknown: !network || op.Op != "dial"}
}

// A lane is a queue of flights with a breaker of its own. A store of one node
// has one; a cluster has one for each range of slots, so that a node that is
// away, or slow, holds up nobody else.
type lane struct {
	v      *Valkey
	epochs []string // keys that tell whether the store lost its data

	mu       sync.Mutex
	away     int // flights under way
	pace     tempo.Tempo
	boarding *flight   // one of those under way that has not left yet; nil when all have
	queue    []*flight // that wait; the last one boards
	down     *outage   // why the lane is shut; nil when it is not
	suspect  string    // a key that failed last

	wake    chan struct{}    // asks tend to probe and reconcile; holds one
	known   string           // the epochs seen last, one after the other; tend's own
	flights atomic.Uint64    // how many have left
	own     *exchange.Holder // of a connection for one of them
	recall  *recall.Recall
	standby *standby
}

// shut makes every further call an outage until a probe succeeds. l.mu is held.
func (l *lane) shut(o *outage) {
	if !l.closed() {
		l.down = o.unsent() // the latest cause tells most
	}
	l.nudge()
}

// closed tells whether the lane was shut for good. l.mu is held.
func (l *lane) closed() bool { return l.down != nil && l.down.cause == errClosed }

// trip shuts the lane from outside a flight.
func (l *lane) trip(o *outage) {
	l.mu.Lock()
	l.shut(o)
	l.mu.Unlock()
}

// open lets calls through again, unless the counter was closed.
func (l *lane) open() {
	l.standby.clear()
	l.mu.Lock()
	if !l.closed() {
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

func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// tend probes the store whenever something went wrong, until it answers. One
// probe per lane finds out that the store is back, not its callers.
func (l *lane) tend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for wait := probeFirst; ; wait = min(2*wait, probeMost) {
			err := l.revive(ctx)
			if err == nil && !l.standby.owes() {
				break
			}
			if err != nil {
				l.trip(outageOf(err))
				l.v.report()
			}
			if !pause(ctx, jitter(wait)) {
				return
			}
		}
	}
}

// revive asks the store, which was reached before, gives back what it lost, adds what was admitted
// without it, and only then lets calls through. A connection of its own that flights
// have lost is opened again before it asks: what is lost from then on, they notice.
func (l *lane) revive(ctx context.Context) error {
	own := l.own.Renew(ctx)
	if err := l.settle(ctx); err != nil {
		own.Close()
		return err
	}
	l.own.Leave(own)
	l.open()
	return nil
}

// settle makes sure that the store knows what it did and what it is owed.
func (l *lane) settle(ctx context.Context) error {
	client := l.v.client.Load()
	epoch, err := l.probe(ctx, *client)
	if err != nil {
		return err
	}
	if l.known != "" && l.known != epoch {
		if err := l.pushFloors(ctx, *client); err != nil {
			return err
		}
	}
	l.known = epoch
	return l.pushDebts(ctx, *client)
}

// probe reads the lane's epochs, making those that are not there. It is a write,
// so that a store that is read-only or out of memory does not pass; and it also
// tries the slot that failed last, whose node may be another one.
func (l *lane) probe(ctx context.Context, c valkey.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.v.timeout)
	defer cancel()
	l.mu.Lock()
	suspect := l.suspect
	l.mu.Unlock()
	if l.v.clustered && suspect != "" {
		key := "sluice:counter:probe:{" + slots.Tag(suspect) + "}"
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

// pause waits, and tells whether the whole time passed.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
