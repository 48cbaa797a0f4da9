package streams

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// messages returns how many messages a test of faults sends: SLUICE_TEST_STREAM_MESSAGES,
// or as many as a short run takes.
func messages(t testing.TB, short int) int {
	t.Helper()
	text := os.Getenv("SLUICE_TEST_STREAM_MESSAGES")
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_TEST_STREAM_MESSAGES: %q is not a number of messages", text)
	}
	return n
}

// A tally counts messages by their ids.
type tally struct {
	t     testing.TB
	total int

	mu      sync.Mutex
	acked   map[string]bool
	seen    map[string]int
	repeats int // of clients, because it was not known whether a message was taken
}

// senders are the clients that post at a time.
const senders = 16

// send posts messages until each is acknowledged. A client repeats what is not.
func (c *tally) send(url string) {
	ids := make(chan string)
	go func() {
		defer close(ids)
		for i := range c.total {
			ids <- fmt.Sprintf("m%06d", i)
		}
	}()
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: rig.Patience}
			for id := range ids {
				c.deliver(client, url, id)
			}
			client.CloseIdleConnections()
		})
	}
	all.Wait()
}

func (c *tally) deliver(client *http.Client, url, id string) {
	for end := time.Now().Add(5 * rig.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		got, err := rig.SendBy(client, http.MethodPost, url, `{"id":"`+id+`"}`, "Idempotency-Key", id)
		switch {
		case err == nil && got.Status == 200:
			c.mu.Lock()
			c.acked[id] = true
			c.mu.Unlock()
			return
		case err == nil && got.Status == 503: // not accepted: a repeat makes no second message
		case err == nil && got.Status != 504:
			c.t.Errorf("message %s: %s", id, got)
			return
		default:
			c.mu.Lock()
			c.repeats++
			c.mu.Unlock()
		}
	}
	c.t.Errorf("message %s was never acknowledged", id)
}

// receive counts what comes, with clients that connect again when their connection ends.
func (c *tally) receive(url string, clients int) {
	events, over := make(chan event, 10_000), make(chan struct{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for {
				l, _, err := listenAt(c.t, url, events)
				if l != nil && err == nil {
					select {
					case <-l.ended:
					case <-over:
						l.cancel()
						<-l.ended
					}
				}
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for e := range events {
			c.mu.Lock()
			c.seen[e.id]++
			c.mu.Unlock()
		}
	}()
	c.t.Cleanup(func() {
		close(over)
		all.Wait()
		close(events)
		<-counted
	})
}

// state returns the numbers of messages.
func (c *tally) state() (acked, received, lost, duplicates int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.acked {
		if c.seen[id] == 0 {
			lost++
		}
	}
	for _, n := range c.seen {
		duplicates += n - 1
	}
	return len(c.acked), len(c.seen), lost, duplicates
}

// through sends messages and has fault happen twice on the way. It counts until all are
// there; more than bound duplicates for each fault fail the test.
func (c *tally) through(g *gateway, path, feed string, bound int, fault func()) {
	c.acked, c.seen = make(map[string]bool), make(map[string]int)
	c.receive(g.Traffic+feed, 2)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(g.Traffic + path)
	}()
	const faults = 2
	for i := range faults {
		rig.Within(c.t, 5*rig.Patience, "the load", func() error {
			if acked, _, _, _ := c.state(); acked < (i+1)*c.total/(faults+1) {
				return fmt.Errorf("%d are acknowledged", acked)
			}
			return nil
		})
		fault()
	}
	<-sent
	rig.Within(c.t, 5*rig.Patience, "every acknowledged message", func() error {
		if _, _, lost, _ := c.state(); lost > 0 {
			return fmt.Errorf("%d have not come", lost)
		}
		return nil
	})
	acked, received, lost, duplicates := c.state()
	c.t.Logf("published %d, acknowledged %d, received %d, lost %d, duplicates %d, repeated by clients %d", c.total, acked, received, lost, duplicates, c.repeats)
	if acked != c.total {
		c.t.Errorf("%d of %d messages are acknowledged", acked, c.total)
	}
	if most := faults*bound + c.repeats; duplicates > most {
		c.t.Errorf("%d duplicates, more than %d", duplicates, most)
	}
}

// window bounds what is on its way to the broker, and from it.
const window = 64

func throughBroker(p topic) object {
	limits := object{"max_in_flight": window}
	return streamAPI("orders", true, object{
		"in":   flow(object{"http_server": object{"path": "/in", "timeout": "2s"}}, p.published(), limits),
		"feed": flow(p.consumed("feed"), served("/feed"), limits),
	})
}

func TestAMessageBrokerThatIsKilledLosesNothing(t *testing.T) { // alone, because others use the broker
	b := testenv.RabbitMQ(t)
	g := newGateway(t, nil, throughBroker(newTopic(t, b)))
	g.up("orders", "feed", "consume", "input")
	b.SaveQueues(t)
	(&tally{t: t, total: messages(t, 1500)}).through(g, "/orders/in", "/orders/feed", 2*window, func() {
		b.Kill()
		if err := b.Start(); err != nil {
			t.Error(err)
		}
	})
}

func TestAGatewayThatIsKilledLosesNothingItAcknowledged(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, throughBroker(newTopic(t, testenv.RabbitMQ(t))))
	g.up("orders", "feed", "consume", "input")
	(&tally{t: t, total: messages(t, 1500)}).through(g, "/orders/in", "/orders/feed", 2*window, func() {
		g.Kill()
		g.StartReady()
	})
}

func TestAJournalLosesNothingItAcknowledged(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, streamAPI("orders", true, object{
		"in":   flow(object{"http_server": object{"path": "/in", "timeout": "2s"}}, object{"msgbroker": object{"addresses": []string{"inproc://"}, "topic": "orders"}}),
		"feed": flow(object{"msgbroker": object{"addresses": []string{"inproc://"}, "topics": []string{"orders"}, "consumer_group": "g"}}, served("/feed")),
	}))
	// What the cursor of the group has not noted when the gateway ends comes again: the
	// messages of 100 ms, and those that are not settled.
	total := messages(t, 1500)
	(&tally{t: t, total: total}).through(g, "/orders/in", "/orders/feed", total, func() {
		g.Kill()
		g.StartReady()
	})
}

// TestABrokerWithAnAlarmHasClientsTryAgain: one whose disk is full takes nothing.
func TestABrokerWithAnAlarmHasClientsTryAgain(t *testing.T) { // alone, because others use the broker
	b := testenv.RabbitMQ(t)
	g := newGateway(t, nil, throughBroker(newTopic(t, b)))
	g.up("orders", "feed", "consume", "input")
	l := g.listen("/orders/feed")
	g.post(200, "/orders/in", "before")
	if e := l.next(); e.data != "before" {
		t.Fatal(e)
	}
	b.Control(t, "set_disk_free_limit", "1000000GB")
	cleared := false
	t.Cleanup(func() {
		if !cleared {
			b.Control(t, "set_disk_free_limit", "1MB")
		}
	})
	// The broker says so to those that publish: the message that learns of it may arrive.
	rig.Eventually(t, "an answer 503", func() error {
		got, err := rig.Send(http.MethodPost, g.Traffic+"/orders/in", "during")
		return rig.Want(503, got, err)
	})
	got := g.post(503, "/orders/in", "refused")
	if got.Header.Get("Retry-After") != "1" {
		t.Errorf("answer %s", got)
	}
	before := g.resident()
	for range 200 {
		if got := rig.Call(t, http.MethodGet, g.Traffic+"/orders/none", nil); got.Status != 404 {
			t.Fatal(got)
		}
	}
	if more := g.resident() - before; more > 64<<20 {
		t.Errorf("the gateway has %.0f MiB more", more/(1<<20))
	}
	b.Control(t, "set_disk_free_limit", "1MB")
	cleared = true
	rig.Eventually(t, "an answer 200", func() error {
		got, err := rig.Send(http.MethodPost, g.Traffic+"/orders/in", "after")
		return rig.Want(200, got, err)
	})
	for e := l.next(); e.data != "after"; e = l.next() {
		if e.data != "during" {
			t.Errorf("event %+v", e)
		}
	}
}

// TestAChangedStreamLeavesOthersAlone: in the middle of their traffic.
func TestAChangedStreamLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	const streams, changed = 100, 42
	apiOf := func(version int) object {
		all := object{}
		for i := range streams {
			script := "root = this"
			if i == changed {
				script = fmt.Sprintf("root = this\nroot.version = %d", version)
			}
			all[fmt.Sprintf("s%d", i)] = flow(posted(fmt.Sprintf("/in/%d", i)), served(fmt.Sprintf("/out/%d", i)), steps(object{"mapping": script}))
		}
		return streamAPI("many", true, all)
	}
	g := newGateway(t, settings{"gateway.watch": "false"}, apiOf(1))
	var clients []*listener
	for i := range streams {
		clients = append(clients, g.listen(fmt.Sprintf("/many/out/%d", i)))
	}
	var mu sync.Mutex
	acked := make(map[string]bool)
	load := rig.StartLoad(t, 8, func(client *http.Client, n int) error {
		i := n * 7 % streams
		id := fmt.Sprintf("%p-%d", client, n)
		for {
			got, err := rig.SendBy(client, http.MethodPost, g.Traffic+fmt.Sprintf("/many/in/%d", i), `{"id":"`+id+`"}`, "Idempotency-Key", id)
			if err == nil && got.Status == 503 && i == changed {
				continue // the stream is being changed
			}
			if err = rig.Want(200, got, err); err == nil {
				mu.Lock()
				acked[id] = true
				mu.Unlock()
			}
			return err
		}
	})
	load.AwaitMore(2 * streams)
	g.save(t, apiOf(2))
	g.Signal(syscall.SIGHUP)
	clients[changed].awaitEnd()
	next := g.listen(fmt.Sprintf("/many/out/%d", changed))
	load.AwaitMore(2 * streams)
	load.Stop()
	g.post(200, fmt.Sprintf("/many/in/%d", changed), "{}")
	seen := make(map[string]bool)
	for e := next.next(); e.data != `{"version":2}`; e = next.next() {
		seen[e.id] = true
	}
	for i, l := range clients {
		select {
		case <-l.ended:
			if i != changed {
				t.Errorf("the client of stream %d was disconnected", i)
			}
		default:
		}
		if i != changed {
			g.post(200, fmt.Sprintf("/many/in/%d", i), "{}", "Idempotency-Key", "last")
			for e := l.next(); e.id != "last"; e = l.next() {
				seen[e.id] = true
			}
		}
	}
	for len(clients[changed].events) > 0 {
		seen[clients[changed].next().id] = true
	}
	for id := range acked {
		if !seen[id] {
			t.Errorf("message %s was acknowledged, and is lost", id)
		}
	}
}

// TestManyClientsLoseNothing: a thousand, of which each gets its part.
func TestManyClientsLoseNothing(t *testing.T) {
	t.Parallel()
	const clients = 1000
	total := messages(t, 10_000)
	b := testenv.RabbitMQ(t)
	p := newTopic(t, b)
	g := newGateway(t, nil, streamAPI("orders", true, object{"feed": flow(p.consumed("feed"), served("/feed"))}))
	g.up("orders", "feed", "consume", "input")
	events := make(chan event, 10_000)
	for range clients {
		if _, status, err := listenAt(t, g.Traffic+"/orders/feed", events); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	g.await(`sluice_stream_clients{api="orders",connector="output",side="output",stream="feed"}`, clients)
	before := g.resident()
	body := strings.Repeat("x", 1<<10)
	published := make(chan error, 1)
	go func() { published <- publish(p, total, body) }()
	seen := make(map[string]int)
	for len(seen) < total {
		select {
		case e := <-events:
			seen[e.id]++
		case <-time.After(rig.Patience):
			t.Fatalf("%d of %d messages have come", len(seen), total)
		}
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("message %s came %d times", id, n)
		}
	}
	more := g.resident() - before
	t.Logf("%d messages to %d clients; %.0f MiB more memory", total, clients, more/(1<<20))
	if more > 128<<20 {
		t.Errorf("the gateway has %.0f MiB more", more/(1<<20))
	}
}

// TestASlowClientDoesNotHoldUpOthers: it is disconnected, and what it did not get goes to
// others.
func TestASlowClientDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	const clients, total, size = 10, 800, 128 << 10
	g := newGateway(t, nil, streamAPI("open", true, object{"direct": flow(posted("/in"),
		object{"http_server": object{"path": "/out", "write_timeout": "5s"}}, object{"max_in_flight_bytes": "64MiB"})}))
	slow := dial(t, g)
	_, _ = fmt.Fprint(slow, "GET /open/out HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
	events := make(chan event, total)
	for range clients {
		if _, status, err := listenAt(t, g.Traffic+"/open/out", events); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	g.await(`sluice_stream_clients{api="open",connector="output",side="output",stream="direct"}`, clients+1)
	body := strings.Repeat("x", size)
	var all sync.WaitGroup
	ids := make(chan int, total)
	for i := range total {
		ids <- i
	}
	close(ids)
	for range 32 {
		all.Go(func() {
			for i := range ids {
				got, err := rig.Send(http.MethodPost, g.Traffic+"/open/in", body, "Idempotency-Key", fmt.Sprint("m", i))
				if err = rig.Want(200, got, err); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	g.await(`sluice_stream_clients_dropped_total{api="open",connector="output",side="output",stream="direct"}`, 1)
	seen := make(map[string]bool)
	got := drained(slow)
	for part := range strings.SplitSeq(got, "\n\n") { // the last one may be torn
		if id, data, ok := strings.Cut(strings.TrimPrefix(part, "id: "), "\ndata: "); ok && len(data) == size {
			seen[id] = true
		}
	}
	of := len(seen)
	rig.Eventually(t, "every message", func() error {
		for len(events) > 0 {
			seen[(<-events).id] = true
		}
		if len(seen) < total {
			return errors.New(fmt.Sprint(len(seen)))
		}
		return nil
	})
	t.Logf("the slow client had %d of %d messages in its socket", of, total)
}
