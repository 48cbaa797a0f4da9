package wire

import (
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// endlessConn is a connection that never waits: it takes all and always has more.
type endlessConn struct{ net.Conn }

func (endlessConn) Read(p []byte) (int, error)       { return len(p), nil }
func (endlessConn) Write(p []byte) (int, error)      { return len(p), nil }
func (endlessConn) SetReadDeadline(time.Time) error  { return nil }
func (endlessConn) SetWriteDeadline(time.Time) error { return nil }

// untilOther is the body of an answer. It makes another goroutine ready to run at
// its first read, and ends once that goroutine has run.
type untilOther struct {
	started bool
	ran     atomic.Bool
	passed  int // bytes before the other goroutine ran
	most    int // bytes after which it ends in any case
}

func (u *untilOther) Read(p []byte) (int, error) {
	if !u.started {
		u.started = true
		go u.ran.Store(true)
	}
	if u.ran.Load() || u.passed >= u.most {
		return 0, io.EOF
	}
	u.passed += len(p)
	return len(p), nil
}

func (u *untilOther) Write(p []byte) (int, error) {
	n, err := u.Read(p)
	if err != nil {
		err = errors.New("the other goroutine has run")
	}
	return n, err
}

func (u *untilOther) Close() error { return nil }

// Without a turn for others, each of fifty transfers that never wait occupies the
// processor until the runtime interrupts it, which it does after 10 ms.
func TestATransferThatNeverWaitsLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const most, size = 2 * turnBytes, 10 << 20
	for name, transfer := range map[string]func(*conn, *untilOther) error{
		"an answer": func(c *conn, u *untilOther) error {
			return c.writeStream(&Answer{Status: 200, Stream: u, Length: -1})
		},
		"a request's body": func(c *conn, u *untilOther) error {
			c.body.reset(c, &head{length: size})
			_, err := io.CopyBuffer(u, struct{ io.Reader }{&c.body}, make([]byte, streamPiece))
			return err
		},
	} {
		conf := testConfig()
		conf.MaxBody = size
		c := newConn(New(conf, &echo{}, log.New(io.Discard, "", 0)), endlessConn{}, netip.Addr{})
		c.take()
		u := &untilOther{most: size}
		err := transfer(c, u)
		if u.passed > most || !u.ran.Load() {
			t.Errorf("%s: %d bytes before another goroutine ran, want at most %d (%v)", name, u.passed, most, err)
		}
		c.release()
	}
}
