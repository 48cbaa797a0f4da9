package wsconn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// report keeps how sends ended, in their order.
type report struct {
	mu  sync.Mutex
	all []error
}

func (r *report) done(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

func TestSendsEndOnceTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		o, r := New(near, time.Second), new(report)
		o.Send([]byte("one"), r.done)
		o.Send([]byte("two"), r.done)
		synctest.Wait()
		if len(r.all) > 0 || o.Waiting() != 6 {
			t.Errorf("before anything is read: %v, %d wait", r.all, o.Waiting())
		}
		got := make([]byte, 6)
		_, _ = io.ReadFull(far, got[:4])
		synctest.Wait()
		if !slices.Equal(r.all, []error{nil}) && len(r.all) > 0 {
			t.Errorf("after four bytes: %v", r.all)
		}
		_, _ = io.ReadFull(far, got[4:])
		o.Flushed()
		if !slices.Equal(r.all, []error{nil, nil}) || !bytes.Equal(got, []byte("onetwo")) || o.Waiting() > 0 {
			t.Errorf("in the end: %v, %q, %d wait", r.all, got, o.Waiting())
		}
		o.Abandon()
		far.Close()
	})
}

func TestSendsThatAreNotReadFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		o, r := New(near, time.Second), new(report)
		o.Send([]byte("one"), r.done)
		o.Send([]byte("two"), r.done)
		o.Flushed()
		o.Send([]byte("three"), r.done)
		if len(r.all) != 3 || slices.Contains(r.all, nil) || !o.Slow() {
			t.Errorf("%v, slow %t", r.all, o.Slow())
		}
		far.Close()
	})
}

func TestAnAbandonedConnectionFailsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		o, r := New(near, time.Second), new(report)
		o.Send([]byte("one"), r.done)
		synctest.Wait()
		o.Abandon()
		o.Flushed()
		if len(r.all) != 1 || !errors.Is(r.all[0], ErrAbandoned) || o.Slow() {
			t.Errorf("%v, slow %t", r.all, o.Slow())
		}
		far.Close()
	})
}
