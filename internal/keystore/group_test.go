package keystore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// member watches a group and counts how often it was told to reload.
type member struct {
	told   atomic.Int64
	mu     sync.Mutex
	forgot []string
}

func (m *member) forget(api string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgot = append(m.forgot, api)
}

func (m *member) forgotten() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.forgot, ",")
}

func join(t *testing.T, addr, group string) (*member, *Group) {
	t.Helper()
	v, err := OpenValkey(ValkeyOptions{Addresses: []string{addr}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	g, m := v.Group(group), new(member)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Watch(ctx, func() { m.told.Add(1) }, m.forget) }()
	t.Cleanup(func() { cancel(); <-ended; v.Close() })
	return m, g
}

// awaitListeners waits until n members are subscribed.
func awaitListeners(t *testing.T, store *testenv.Store, group, want string) {
	t.Helper()
	wait.Until(t, "subscribers", func() bool {
		return store.Do("PUBSUB", "NUMSUB", "sluice:reload:"+group) == "sluice:reload:"+group+"\n"+want
	})
}

func TestEveryGatewayOfAGroupIsToldAndNoOther(t *testing.T) {
	store := testenv.Valkey(t)
	first, group := join(t, store.Addr, "blue")
	second, _ := join(t, store.Addr, "blue")
	other, _ := join(t, store.Addr, "green")
	awaitListeners(t, store, "blue", "2")
	awaitListeners(t, store, "green", "1")
	for range 3 {
		if err := group.ReloadGroup(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "messages", func() bool { return first.told.Load() == 3 && second.told.Load() == 3 })
	if err := group.ForgetAnswers(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "messages about answers", func() bool { return first.forgotten() == "orders" && second.forgotten() == "orders" })
	if n := other.told.Load(); n != 0 || other.forgotten() != "" || first.told.Load() != 3 {
		t.Errorf("another group was told %d times, %q; the first one %d times", n, other.forgotten(), first.told.Load())
	}
}

func TestAGatewayThatMayHaveMissedAReloadReloads(t *testing.T) {
	store := testenv.Valkey(t)
	m, group := join(t, store.Addr, "blue")
	awaitListeners(t, store, "blue", "1")
	store.Kill()
	if err := group.ReloadGroup(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
	store.Restart()
	wait.Until(t, "reload after the store was away", func() bool { return m.told.Load() >= 1 })
	wait.Until(t, "all answers forgotten", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.forgot) >= 1 })
	awaitListeners(t, store, "blue", "1")
	before := m.told.Load()
	wait.Until(t, "publishing", func() bool { return group.ReloadGroup(t.Context()) == nil })
	wait.Until(t, "a message after the store came back", func() bool { return m.told.Load() > before })
}

func TestAGatewayThatStartsBeforeItsStoreReloadsOnceThatIsThere(t *testing.T) {
	store := testenv.Valkey(t)
	store.Kill()
	m, _ := join(t, store.Addr, "blue")
	store.Restart()
	wait.Until(t, "reload", func() bool { return m.told.Load() >= 1 })
}

// What is told while a first subscription is lost on its way is missed too.
func TestAGatewayWhoseFirstSubscriptionIsCutOffReloads(t *testing.T) {
	store := testenv.Valkey(t)
	m, _ := join(t, cutAt(t, store.Addr, "SUBSCRIBE"), "blue")
	wait.Until(t, "reload", func() bool { return m.told.Load() >= 1 })
}

// cutAt passes connections on to a server, but for the first that says word: it
// is cut, and what was said is lost.
func cutAt(t *testing.T, server, word string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var cut atomic.Bool
	pass := func(client net.Conn) {
		defer client.Close()
		back, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer back.Close()
		group.Go(func() { _, _ = io.Copy(client, back) })
		buf := make([]byte, 4096)
		for {
			n, err := client.Read(buf)
			if err != nil || bytes.Contains(buf[:n], []byte(word)) && !cut.Swap(true) {
				return
			}
			if _, err := back.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { pass(client) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	return l.Addr().String()
}
