package rawio

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestWrappedConnectionCarriesWhatThePlainOneDoes(t *testing.T) {
	a, b := pair(t)
	wrapped := Wrap(a)
	sent := make([]byte, 8<<20) // more than the socket takes at once
	_, _ = rand.Read(sent)
	echoed := make(chan error, 1)
	go func() { // both directions at the same time
		_, err := io.CopyN(b, b, int64(len(sent)))
		echoed <- err
	}()
	written := make(chan error, 1)
	go func() {
		n, err := wrapped.Write(sent)
		if n != len(sent) {
			t.Errorf("wrote %d of %d", n, len(sent))
		}
		written <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(wrapped, got); err != nil {
		t.Fatal(err)
	}
	for _, done := range []chan error{written, echoed} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(sent, got) {
		t.Error("bytes changed on the way")
	}
	b.Close()
	if n, err := wrapped.Read(got); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

func TestWrappedConnectionKeepsDeadlines(t *testing.T) {
	a, _ := pair(t)
	wrapped := Wrap(a)
	if err := wrapped.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := wrapped.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %d, %v", n, err)
	}
	if n, err := wrapped.Write(make([]byte, 64<<20)); n == 64<<20 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %d, %v", n, err)
	}
}

func TestWrappedConnectionThatIsClosedFails(t *testing.T) {
	a, _ := pair(t)
	wrapped := Wrap(a)
	read := make(chan error, 1)
	go func() { _, err := wrapped.Read(make([]byte, 1)); read <- err }()
	wrapped.Close()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := wrapped.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write: %v", err)
	}
}
