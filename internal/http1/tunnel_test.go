package http1

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

const patience = 60 * time.Second

// pair returns two ends of one TCP connection.
func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	_ = dialled.SetDeadline(time.Now().Add(patience))
	return dialled.(*net.TCPConn), accepted.(*net.TCPConn)
}

// joined starts a tunnel and returns its outer ends.
func joined(t testing.TB, idle time.Duration, first [2][]byte) (client, upstream *net.TCPConn, ended <-chan TunnelResult) {
	client, inner := pair(t)
	upstream, outer := pair(t)
	done := make(chan TunnelResult, 1)
	go func() {
		done <- Tunnel(inner, outer, first, idle)
		inner.Close()
		outer.Close()
	}()
	return client, upstream, done
}

func await(t testing.TB, ended <-chan TunnelResult) TunnelResult {
	t.Helper()
	select {
	case o := <-ended:
		return o
	case <-time.After(patience):
		t.Fatal("the tunnel does not end")
		return TunnelResult{}
	}
}

func TestBothDirectionsAtOnceArriveWhole(t *testing.T) {
	client, upstream, ended := joined(t, patience, [2][]byte{[]byte("from upstream: "), []byte("from client: ")})
	const size = 8 << 20
	random := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	send := func(c *net.TCPConn) {
		for rest := random; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)%100_000)
			if _, err := c.Write(rest[:n]); err != nil {
				t.Errorf("send: %v", err)
				return
			}
			rest = rest[n:]
		}
		_ = c.CloseWrite()
	}
	go send(client)
	go send(upstream)
	check := func(c *net.TCPConn, first string) {
		got, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(got[:20]), first) || sha256.Sum256(got[len(first):]) != sha256.Sum256(random) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	done := make(chan struct{})
	go func() { check(upstream, "from client: "); close(done) }()
	check(client, "from upstream: ")
	<-done
	if o := await(t, ended); o.Sent != size+13 || o.Received != size+15 || o.Idle {
		t.Errorf("outcome %+v", o)
	}
}

func TestOneEndedSideLeavesTheOtherOpen(t *testing.T) {
	client, upstream, ended := joined(t, patience, [2][]byte{})
	_, _ = client.Write([]byte("question"))
	_ = client.CloseWrite()
	if got, err := io.ReadAll(upstream); string(got) != "question" || err != nil {
		t.Fatalf("upstream read %q, %v", got, err)
	}
	_, _ = upstream.Write([]byte("answer"))
	_ = upstream.CloseWrite()
	if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
		t.Fatalf("client read %q, %v", got, err)
	}
	if o := await(t, ended); o != (TunnelResult{Sent: 8, Received: 6}) {
		t.Errorf("outcome %+v", o)
	}
}

func TestABreakOnEitherSideEndsBoth(t *testing.T) {
	for name, side := range map[string]int{"client": 0, "upstream": 1} {
		t.Run(name, func(t *testing.T) {
			client, upstream, ended := joined(t, patience, [2][]byte{})
			ends := [2]*net.TCPConn{client, upstream}
			_ = ends[side].SetLinger(0)
			_ = ends[side].Close()
			if _, err := ends[1-side].Read(make([]byte, 1)); err == nil {
				t.Error("the other side read a byte")
			}
			await(t, ended)
		})
	}
}

func TestSilenceEndsATunnelAndSpeechOfOneSideKeepsIt(t *testing.T) {
	t.Parallel()
	const idle = 2 * time.Second // a busy machine says something more often
	client, upstream, ended := joined(t, idle, [2][]byte{})
	start := time.Now()
	for time.Since(start) < 3*idle/2 { // the client is silent all the time
		if _, err := upstream.Write([]byte("tick")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		<-time.After(idle / 10)
	}
	if o := await(t, ended); !o.Idle {
		t.Errorf("outcome %+v", o)
	}
	if got, err := io.ReadAll(client); len(got) > 0 || err != nil {
		t.Errorf("client: %q, %v", got, err)
	}
}

// TestASlowReceiverHoldsItsSenderBack sends to somebody who does not read. What
// is on the way must stay bounded, and all of it arrive in the end.
func TestASlowReceiverHoldsItsSenderBack(t *testing.T) {
	client, upstream, ended := joined(t, patience, [2][]byte{})
	_ = upstream.SetReadBuffer(64 << 10)
	piece := bytes.Repeat([]byte("x"), 64<<10)
	sent := 0
	for { // until nothing more is taken
		_ = client.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := client.Write(piece)
		sent += n
		if err != nil {
			break
		}
		if sent > 256<<20 {
			t.Fatal("256 MiB were taken though nobody reads")
		}
	}
	_ = client.CloseWrite()
	n, err := io.Copy(io.Discard, upstream)
	if n != int64(sent) || err != nil {
		t.Errorf("%d of %d bytes arrived, %v", n, sent, err)
	}
	_ = upstream.CloseWrite()
	if o := await(t, ended); o.Sent != int64(sent) {
		t.Errorf("outcome %+v, sent %d", o, sent)
	}
}

func TestAReceiverThatTakesNothingEndsTheTunnel(t *testing.T) {
	client, _, ended := joined(t, 200*time.Millisecond, [2][]byte{})
	go func() {
		_, _ = io.Copy(client, zeros{}) // until it is cut
	}()
	await(t, ended)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
