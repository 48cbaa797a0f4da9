package wire

import (
	"strings"
	"testing"
	"time"
)

func relayed(t *testing.T) *Call {
	t.Helper()
	call, fault := NewCall([]byte("POST /a/b?c=d HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nContent-Length: 2\r\n\r\nhi"), Config{
		MaxHeader: 4 << 10, MaxURL: 1 << 10, MaxHeaders: 20, MaxBody: 1 << 10,
		ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
	})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	return call
}

func TestARelayIsTheCallUnderAnotherPath(t *testing.T) {
	call := relayed(t)
	r := call.Relay([]byte("/x?y=z"))
	defer r.Free()
	if string(r.Path) != "/x" || string(r.Query) != "y=z" || string(r.Method) != "POST" || string(r.Host) != "h" || string(r.Body) != "hi" {
		t.Errorf("%s %s ? %s at %s with %q", r.Method, r.Path, r.Query, r.Host, r.Body)
	}
	if string(r.Header("x-one")) != "1" || string(call.Path) != "/a/b" {
		t.Errorf("%q, %s", r.Lines, call.Path)
	}
}

func TestARelayWithOtherLinesLeavesThoseOfTheCall(t *testing.T) {
	call := relayed(t)
	for range 3 { // what is pooled remembers nothing
		r := call.Relay([]byte("/x"))
		if r.Header("X-Two") != nil || r.Query != nil {
			t.Fatalf("%q ? %s before anything was changed", r.Lines, r.Query)
		}
		r.UseLines(append(r.OwnLines(), "X-Two: 2\r\nAuthorization: secret\r\n"...))
		if string(r.Header("X-Two")) != "2" || string(r.Get(NameAuthorization)) != "secret" || r.Header("X-One") != nil {
			t.Errorf("%q", r.Lines)
		}
		r.Free()
	}
	if string(call.Header("X-One")) != "1" || call.Header("X-Two") != nil || len(call.Fields) != 3 {
		t.Errorf("the call has %q", call.Lines)
	}
}

func TestOfSeveralLimitsOfABodyTheLeastHolds(t *testing.T) {
	call, fault := Imagine([]byte("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"+strings.Repeat("x", 100)), Config{
		MaxHeader: 4 << 10, MaxURL: 1 << 10, MaxHeaders: 20, MaxBody: 1 << 10,
		ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second,
	})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	live := &body{}
	for _, c := range []*Call{call, {Stream: live}} {
		c.LimitBody(10)
		c.LimitBody(50)
	}
	if _, err := call.Stream.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Stream.Read(make([]byte, 10)); err != ErrBodyOverLimit || live.most != 10 {
		t.Errorf("%v, %d", err, live.most)
	}
}
