package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// echo answers with how many keys there were, the last of them and the argument.
const echo = `return #KEYS .. ':' .. KEYS[#KEYS] .. ':' .. ARGV[1]`

// soon is later than any answer of a store that runs.
func soon() time.Time { return time.Now().Add(20 * time.Second) }

func open(t *testing.T, address string, g Greeting) (*Conn, error) {
	t.Helper()
	ctx, cancel := context.WithDeadline(t.Context(), soon())
	defer cancel()
	c, err := Open(ctx, address, g)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

func mustOpen(t *testing.T, address string) *Conn {
	t.Helper()
	c, err := open(t, address, Greeting{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitGone returns once a store has no connection of a name.
func awaitGone(t *testing.T, store *testenv.Store, name string) {
	t.Helper()
	for last := soon(); strings.Contains(store.Do("CLIENT", "LIST"), "name="+name+" "); {
		if time.Now().After(last) {
			t.Fatalf("connection %s stays", name)
		}
	}
}

func run(c *Conn, sha string, keys []string, argument string) (string, error) {
	reply, err := c.run([]byte("before "), soon(), sha, keys, []byte(argument))
	return strings.TrimPrefix(string(reply), "before "), err
}

func expect(t *testing.T, c *Conn, sha string, keys []string, argument string) {
	t.Helper()
	got, err := run(c, sha, keys, argument)
	if want := fmt.Sprintf("%d:%s:%s", len(keys), keys[len(keys)-1], argument); err != nil || got != want {
		t.Fatalf("%d bytes, %v, want %d: %.60q, not %.60q", len(got), err, len(want), want, got)
	}
}

func TestScriptsAreCalledAndAnswer(t *testing.T) {
	store := testenv.Valkey(t)
	sha := store.Do("SCRIPT", "LOAD", echo)
	c := mustOpen(t, store.Addr)
	expect(t, c, sha, []string{"a", "b"}, "x\r\n\x00y")
	expect(t, c, sha, []string{""}, "")
	if name := store.Do("CLIENT", "LIST"); !strings.Contains(name, "name=test") {
		t.Errorf("the connection has no name in\n%s", name)
	}
	_, err := run(c, strings.Repeat("0", 40), []string{"a"}, "")
	if refusal, ok := errors.AsType[Refusal](err); !ok || !strings.HasPrefix(refusal.Error(), "NOSCRIPT ") {
		t.Errorf("an unknown script: %v", err)
	}
	expect(t, c, sha, []string{"still good"}, strings.Repeat("long", 15<<10))
}

// What does not fit into the socket's buffers is sent while the store reads.
func TestALargeCallIsSentInParts(t *testing.T) {
	store := testenv.Valkey(t)
	sha := store.Do("SCRIPT", "LOAD", echo)
	c := mustOpen(t, store.Addr)
	keys := make([]string, 4000)
	for i := range keys {
		keys[i] = strings.Repeat("k", 4<<10)
	}
	keys[len(keys)-1] = "last"
	for range 3 {
		expect(t, c, sha, keys, "x")
	}
}

func TestWhoMayNotLogInIsToldSo(t *testing.T) {
	store := testenv.Valkey(t)
	sha := store.Do("SCRIPT", "LOAD", echo)
	store.Do("ACL", "SETUSER", "gate", "on", ">word", "~*", "+evalsha") // may not set its name
	store.Do("CONFIG", "SET", "requirepass", "secret")
	for name, g := range map[string]Greeting{"default": {Password: "secret"}, "gate": {Username: "gate", Password: "word"}} {
		c, err := open(t, store.Addr, g)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		expect(t, c, sha, []string{"a"}, "x")
	}
	for name, g := range map[string]Greeting{"wrong": {Password: "other"}, "unknown": {Username: "who", Password: "word"}} {
		if _, err := open(t, store.Addr, g); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing is sent on a connection that ended meanwhile.
func TestAConnectionThatEndedIsStale(t *testing.T) {
	store := testenv.Valkey(t)
	sha := store.Do("SCRIPT", "LOAD", `redis.call('INCR', KEYS[1]) return 'x'`)
	c := mustOpen(t, store.Addr)
	if _, err := run(c, sha, []string{"n"}, ""); err != nil {
		t.Fatal(err)
	}
	store.Do("CLIENT", "KILL", "TYPE", "normal")
	awaitGone(t, store, "test")
	if _, err := run(c, sha, []string{"n"}, ""); err != ErrStale {
		t.Errorf("after it ended: %v", err)
	}
	c.Close()
	if _, err := run(c, sha, []string{"n"}, ""); err != ErrStale {
		t.Errorf("closed: %v", err)
	}
	if got := store.Do("GET", "n"); got != "1" {
		t.Errorf("counted %s, want 1", got)
	}
}

func TestAStoreThatStandsStillIsGivenUp(t *testing.T) {
	store := testenv.Valkey(t)
	c := mustOpen(t, store.Addr)
	store.Stop()
	defer store.Cont()
	_, err := c.run(nil, time.Now().Add(20*time.Millisecond), strings.Repeat("0", 40), []string{"a"}, nil)
	if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrStale) {
		t.Errorf("%v, want that its time is over", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, store.Addr, Greeting{Name: "x"}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("opening: %v, want that its time is over", err)
	}
}

// oddStore answers each command, which is one line here, with what answer writes.
func oddStore(t *testing.T, answer func(w io.Writer, call int)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		peer, err := l.Accept()
		if err != nil {
			return
		}
		defer peer.Close()
		r := bufio.NewReader(peer)
		for call := 0; ; call++ {
			var lines int
			if _, err := fmt.Fscanf(r, "*%d\r\n", &lines); err != nil {
				return
			}
			for range 2 * lines { // no text has a line end here
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
			}
			answer(peer, call)
		}
	}()
	return l.Addr().String()
}

func TestAnswersComeInPieces(t *testing.T) {
	long := strings.Repeat("z", mostText)
	c := mustOpen(t, oddStore(t, func(w io.Writer, call int) {
		text := "+OK\r\n"
		if call > 0 {
			text = "$5\r\na\r\nbc\r\n"
		}
		if call == 2 {
			text = fmt.Sprintf("$%d\r\n%s\r\n", len(long), long)
		}
		for i, n := 0, 1; i < len(text); i, n = i+n, n*2 {
			_, _ = io.WriteString(w, text[i:min(i+n, len(text))]) // the caller sees what is missing
		}
	}))
	for i, want := range []string{"a\r\nbc", long, "a\r\nbc"} {
		if got, err := run(c, "sha", []string{"k"}, "x"); got != want || err != nil {
			t.Errorf("answer %d: %d bytes, %v, want %d", i, len(got), err, len(want))
		}
	}
}

func TestWhatNoStoreAnswersEndsTheConnection(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"surplus":   {"+a\r\n+b\r\n", "more than it was asked"},
		"too long":  {fmt.Sprintf("$%d\r\n", mostText+1), "want 0 to 65536"},
		"not alike": {"HTTP/1.1 400 Bad Request\r\n", `begins with 'H'`},
		"an end":    {"", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := mustOpen(t, oddStore(t, func(w io.Writer, call int) {
				text := c.answer
				if call == 0 {
					text = "+OK\r\n"
				}
				_, _ = io.WriteString(w, text) // the caller sees what is missing
				if text == "" {
					_ = w.(net.Conn).Close() // what the test is about
				}
			}))
			_, err := run(conn, "sha", []string{"k"}, "x")
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrStale) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What comes unasked must not become the next call's answer.
func TestBytesThatNobodyAskedForMakeItStale(t *testing.T) {
	sent := make(chan struct{})
	c := mustOpen(t, oddStore(t, func(w io.Writer, _ int) {
		_, _ = io.WriteString(w, "+OK\r\n") // the caller sees what is missing
		<-sent
		_, _ = io.WriteString(w, "+unasked\r\n") // as above
		sent <- struct{}{}
	}))
	sent <- struct{}{}
	<-sent
	if got, err := run(c, "sha", []string{"k"}, "x"); err != ErrStale {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAHolderHasOneConnectionForOneCaller(t *testing.T) {
	store := testenv.Valkey(t)
	h := NewHolder(store.Addr, 20*time.Second, Greeting{Name: "held"})
	if h.take() != nil {
		t.Fatal("a new holder has a connection")
	}
	first := h.Renew(t.Context())
	h.Leave(first)
	if h.Renew(t.Context()) != nil {
		t.Error("it opens another one beside one that nobody uses")
	}
	if h.take() != first || h.take() != nil {
		t.Error("want the connection for the first, and none for the second")
	}
	second := h.Renew(t.Context())
	h.Leave(second)
	h.Leave(first) // one too many
	h.Leave(nil)
	if h.take() != second {
		t.Error("the one that came back later is kept")
	}
	h.Close()
	h.Leave(second)
	if h.take() != nil {
		t.Error("a closed holder keeps a connection")
	}
	awaitGone(t, store, "held")

	var none *Holder
	none.Leave(none.Renew(t.Context()))
	if none.take() != nil {
		t.Error("the nil holder has a connection")
	}
	if b, err := none.Run([]byte("b"), soon(), "sha", nil, nil); err != ErrNone || string(b) != "b" {
		t.Errorf("the nil holder answers %q, %v", b, err)
	}
	none.Close()
}

// Only a connection that is still good is kept after a call.
func TestAHolderKeepsWhatIsGood(t *testing.T) {
	store := testenv.Valkey(t)
	sha := store.Do("SCRIPT", "LOAD", echo)
	h := NewHolder(store.Addr, 20*time.Second, Greeting{Name: "held"})
	defer h.Close()
	first := h.Renew(t.Context())
	h.Leave(first)
	for _, c := range []struct{ sha, want string }{{sha, "1:k:x"}, {"unknown", ""}, {sha, "1:k:x"}} {
		if b, _ := h.Run(nil, soon(), c.sha, []string{"k"}, []byte("x")); string(b) != c.want {
			t.Errorf("%s: %q, want %q", c.sha, b, c.want)
		}
	}
	if h.take() != first {
		t.Error("it does not keep its connection after an answer and a refusal")
	}
	h.Leave(first)
	first.Close()
	if _, err := h.Run(nil, soon(), sha, []string{"k"}, nil); err != ErrStale {
		t.Errorf("of one that ended: %v", err)
	}
	if _, err := h.Run(nil, soon(), sha, []string{"k"}, nil); err != ErrNone {
		t.Errorf("after it ended: %v", err)
	}
}

func TestAHolderOpensNoneOfAStoreThatIsAway(t *testing.T) {
	store := testenv.Valkey(t)
	store.Kill()
	if NewHolder(store.Addr, time.Second, Greeting{}).Renew(t.Context()) != nil {
		t.Error("it has a connection to a store that does not run")
	}
}
