package rawio

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestSocketIsReadToItsEnd(t *testing.T) {
	if !Supported {
		t.Log("raw calls are not used on this system")
		return
	}
	a, b := pair(t)
	raw := Conn(a)
	buf := make([]byte, 100)
	var n int
	var err error
	try := func(fd uintptr) bool { n, err = Read(fd, buf); return true }
	_ = raw.Read(try)
	if err != ErrAgain {
		t.Errorf("nothing sent: %d, %v", n, err)
	}
	if allocs := testing.AllocsPerRun(100, func() { _ = raw.Read(try) }); allocs > 0 {
		t.Errorf("a read that would wait allocates %v times", allocs)
	}
	wait := func(fd uintptr) bool { n, err = Read(fd, buf); return err != ErrAgain }
	if _, werr := b.Write([]byte("hello")); werr != nil {
		t.Fatal(werr)
	}
	if _ = raw.Read(wait); err != nil || !bytes.Equal(buf[:n], []byte("hello")) {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	b.Close()
	if _ = raw.Read(wait); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestWriteSaysWhenItWouldWait(t *testing.T) {
	if !Supported {
		t.Log("raw calls are not used on this system")
		return
	}
	a, b := pair(t)
	block := make([]byte, 1<<20)
	sent, err := 0, error(nil)
	for err == nil {
		_ = Conn(a).Write(func(fd uintptr) bool {
			var n int
			n, err = Write(fd, block)
			sent += n
			return true
		})
	}
	if err != ErrAgain || sent == 0 {
		t.Errorf("%d bytes, then %v", sent, err)
	}
	b.Close()
	for err == ErrAgain { // until the reset has come
		_ = Conn(a).Write(func(fd uintptr) bool { _, err = Write(fd, block); return err != ErrAgain })
	}
	if err != syscall.ECONNRESET && err != syscall.EPIPE {
		t.Errorf("after the other end closed: %v", err)
	}
}

func TestQuietSeesBytesAndEndsWithoutTakingThem(t *testing.T) {
	a, b := pair(t)
	quiet := func() (is bool) {
		_ = Conn(a).Control(func(fd uintptr) { is = Quiet(fd) })
		return is
	}
	ended := func() (is bool) {
		_ = Conn(a).Control(func(fd uintptr) { is = Ended(fd) })
		return is
	}
	if !quiet() || ended() {
		t.Error("a new connection is not quiet, or has ended")
	}
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	for quiet() { // until the byte has come
	}
	if ended() {
		t.Error("a connection with a byte to read has ended")
	}
	if _, err := a.Read(one); err != nil || one[0] != 'x' {
		t.Errorf("the byte was taken: %q, %v", one, err)
	}
	if _, err := b.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	b.Close()
	for deadline := time.Now().Add(time.Minute); !ended() && time.Now().Before(deadline); {
	}
	if Supported && !ended() {
		t.Error("a closed connection with a byte left to read has not ended")
	}
	if _, err := a.Read(one); err != nil || one[0] != 'y' {
		t.Errorf("the byte was taken: %q, %v", one, err)
	}
	for quiet() { // until the end has come
	}
	if !ended() {
		t.Error("a closed connection has not ended")
	}
}
