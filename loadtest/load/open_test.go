//go:build linux

package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/bench/answer"
)

// answerer writes the answer to a request for a path; its error closes the
// connection.
type answerer func(w io.Writer, path string) error

func ok(w io.Writer, path string) error {
	body, _ := answer.Body([]byte(path))
	_, err := fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// serve answers on a loopback address until the test ends.
func serve(t *testing.T, answer answerer) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { converse(conn, answer) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		running.Wait()
	})
	return ln.Addr().String()
}

func converse(conn net.Conn, answer answerer) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		for rest := line; rest != "\r\n"; {
			if rest, err = in.ReadString('\n'); err != nil {
				return
			}
		}
		if answer(conn, strings.Fields(line)[1]) != nil {
			return
		}
	}
}

// askFor is a kind of call for a path.
func askFor(path string, weight float64) Kind {
	body, _ := answer.Body([]byte(path))
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
	return Kind{
		Name: path, Weight: weight, Want: answer.Want{Status: 200, Body: body},
		Request: func(dst []byte, _ uint64) []byte { return append(dst, request...) },
	}
}

func runOpen(t *testing.T, plan OpenPlan, pace Pace) *Outcome {
	t.Helper()
	o, err := NewOpen(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	out, err := o.Run(t.Context(), pace)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCallsArriveAtTheRate(t *testing.T) {
	plan := OpenPlan{Addr: serve(t, ok), Conns: 64, Kinds: []Kind{askFor("/a/1k", 3), askFor("/b/64k", 1)}}
	out := runOpen(t, plan, Pace{Rate: 1000, For: time.Second, Slice: 250 * time.Millisecond, Seed: 7})
	all := out.Total()
	if all.Asked < 850 || all.Asked > 1150 || all.Good != all.Asked || out.First != nil {
		t.Errorf("asked %d, good %d, first error %v; want about 1000, all of them good", all.Asked, all.Good, out.First)
	}
	if a, b := out.Kind(0).Asked, out.Kind(1).Asked; a < 2*b || a > 4*b {
		t.Errorf("%d of one kind and %d of the other, want three times as many", a, b)
	}
	if all.Latency.Count() != all.Good || all.Served > all.Good || len(out.Slices) != 4 {
		t.Errorf("%d latencies of %d good, %d of them in time, %d slices", all.Latency.Count(), all.Good, all.Served, len(out.Slices))
	}
	for i := range out.Slices {
		if n := out.Slice(i).Asked; n < 170 || n > 330 {
			t.Errorf("%d calls in slice %d, want about 250", n, i)
		}
	}
}

func TestEqualSeedsAskForTheSame(t *testing.T) {
	plan := OpenPlan{Addr: serve(t, ok), Conns: 8, Kinds: []Kind{askFor("/a/1k", 1), askFor("/b/1k", 1)}}
	pace := Pace{Rate: 2000, For: 100 * time.Millisecond, Seed: 3}
	one, other := runOpen(t, plan, pace), runOpen(t, plan, pace)
	pace.Seed = 4
	third := runOpen(t, plan, pace)
	if one.Kind(0).Asked != other.Kind(0).Asked || one.Kind(1).Asked != other.Kind(1).Asked {
		t.Error("equal seeds came to other calls")
	}
	if one.Kind(0).Asked == third.Kind(0).Asked && one.Kind(1).Asked == third.Kind(1).Asked {
		t.Error("another seed came to the same calls")
	}
}

// A client that waited for the stalled server before the next call would see one slow
// call.
func TestStallIsChargedToAllWhoCameMeanwhile(t *testing.T) {
	const stall = 200 * time.Millisecond
	var served atomic.Int64
	var gate sync.RWMutex
	addr := serve(t, func(w io.Writer, path string) error {
		if served.Add(1) == 300 {
			gate.Lock()
			time.AfterFunc(stall, gate.Unlock)
		}
		gate.RLock()
		defer gate.RUnlock()
		return ok(w, path)
	})
	plan := OpenPlan{Addr: addr, Conns: 16, Kinds: []Kind{askFor("/a/1k", 1)}} // most must wait for a connection
	all := runOpen(t, plan, Pace{Rate: 1000, For: time.Second, Seed: 1}).Total()
	// A fifth of all calls came in the stall, evenly.
	if p50, p85 := all.Latency.Quantile(0.5), all.Latency.Quantile(0.85); p50 > stall/2 || p85 < stall/20 {
		t.Errorf("p50 %v, p85 %v: want the stall in a fifth of the calls", p50, p85)
	}
	if p99, longest := all.Latency.Quantile(0.99), all.Latency.Max(); p99 < stall*8/10 || longest < stall*9/10 {
		t.Errorf("p99 %v, longest %v, want nearly %v", p99, longest, stall)
	}
	if all.Good != all.Asked {
		t.Errorf("%d of %d were answered", all.Good, all.Asked)
	}
}

func TestAnswersAreToldApart(t *testing.T) {
	var n atomic.Int64
	const refusal = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nno\n"
	for _, c := range []struct {
		name   string
		answer answerer
		of     func(*Tally) uint64
		first  string
	}{
		{"refused", func(w io.Writer, _ string) error { return say(w, refusal) }, func(t *Tally) uint64 { return t.Refused }, ""},
		{"refused, with the end of the connection", func(w io.Writer, _ string) error {
			_ = say(w, strings.Replace(refusal, "\r\n", "\r\nConnection: close\r\n", 1))
			return io.EOF
		}, func(t *Tally) uint64 { return t.Refused }, ""},
		{
			"another status", func(w io.Writer, _ string) error { return say(w, strings.Replace(refusal, "503", "502", 1)) },
			func(t *Tally) uint64 { return t.Bad }, "status 502",
		},
		{"another body", func(w io.Writer, _ string) error { return ok(w, "/16k") }, func(t *Tally) uint64 { return t.Bad }, "body of 16384 bytes"},
		{"no answer", func(io.Writer, string) error { return io.EOF }, func(t *Tally) uint64 { return t.Bad }, "closed the connection"},
		{"half an answer", func(w io.Writer, _ string) error {
			_ = say(w, "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\nab")
			return io.EOF
		}, func(t *Tally) uint64 { return t.Bad }, "closed the connection"},
		{"an answer in parts", func(w io.Writer, path string) error {
			var whole strings.Builder
			_ = ok(&whole, path)
			at := int(n.Add(1)*37) % whole.Len()
			return errors.Join(say(w, whole.String()[:at]), say(w, whole.String()[at:]))
		}, func(t *Tally) uint64 { return t.Good }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := askFor("/a/1k", 1)
			kind.Refusals = []int{429, 503}
			out := runOpen(t, OpenPlan{Addr: serve(t, c.answer), Conns: 4, Kinds: []Kind{kind}}, Pace{Rate: 500, For: 100 * time.Millisecond})
			all := out.Total()
			if c.of(all) != all.Asked || all.Asked == 0 {
				t.Errorf("of %d asked: good %d, refused %d, bad %d, late %d; first error %v", all.Asked, all.Good, all.Refused, all.Bad, all.Late, out.First)
			}
			if (out.First == nil) != (c.first == "") || out.First != nil && !strings.Contains(out.First.Error(), c.first) {
				t.Errorf("first error %v, want %q", out.First, c.first)
			}
		})
	}
}

func say(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}

func TestCallsThatAreNotAnsweredAreGivenUp(t *testing.T) {
	silent := make(chan struct{})
	addr := serve(t, func(io.Writer, string) error { <-silent; return io.EOF })
	t.Cleanup(func() { close(silent) })
	plan := OpenPlan{Addr: addr, Conns: 4, Patience: 50 * time.Millisecond, Kinds: []Kind{askFor("/a/1k", 1)}}
	if all := runOpen(t, plan, Pace{Rate: 1000, For: 100 * time.Millisecond}).Total(); all.Late != all.Asked || all.Asked == 0 {
		t.Errorf("%d of %d given up", all.Late, all.Asked)
	}
}

// Calls of one client are served only after twenty of another one, which has connections
// of its own.
func TestCallersApartDoNotWaitForEachOthersConnections(t *testing.T) {
	for _, apart := range []bool{true, false} {
		var quick atomic.Int64
		enough := make(chan struct{})
		release := sync.OnceFunc(func() { close(enough) })
		addr := serve(t, func(w io.Writer, path string) error {
			if strings.HasPrefix(path, "/stuck/") {
				<-enough
			} else if quick.Add(1) == 20 {
				release()
			}
			return ok(w, path)
		})
		patience := time.Second
		if apart {
			patience = time.Minute
		}
		plan := OpenPlan{Addr: addr, Conns: 12, Apart: apart, Patience: patience, Kinds: []Kind{askFor("/stuck/1k", 2), askFor("/quick/1k", 1)}}
		all := runOpen(t, plan, Pace{Rate: 300, For: 300 * time.Millisecond, Seed: 5}).Total()
		release() // for the remaining clients
		if (all.Late == 0) != apart {
			t.Errorf("apart %v: %d of %d were given up", apart, all.Late, all.Asked)
		}
	}
}

func TestCallsForWhichThereIsNoConnectionAreNotMadeWhereNoneMayWait(t *testing.T) {
	silent := make(chan struct{})
	addr := serve(t, func(io.Writer, string) error { <-silent; return io.EOF })
	t.Cleanup(func() { close(silent) })
	plan := OpenPlan{Addr: addr, Conns: 4, Unqueued: true, Patience: 3 * time.Second, Kinds: []Kind{askFor("/a/1k", 1)}}
	if all := runOpen(t, plan, Pace{Rate: 1000, For: 100 * time.Millisecond}).Total(); all.Late != 4 || all.Unsent != all.Asked-4 {
		t.Errorf("of %d calls %d were given up and %d not made", all.Asked, all.Late, all.Unsent)
	}
}

func TestNobodyThereIsToldAsSuch(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	for _, rate := range []float64{500, 0} {
		out := runOpen(t, OpenPlan{Addr: addr, Conns: 4, Kinds: []Kind{askFor("/a/1k", 1)}}, Pace{Rate: rate, For: 60 * time.Millisecond})
		if all := out.Total(); all.Bad != all.Asked || all.Asked == 0 || out.First == nil || !strings.Contains(out.First.Error(), "refused") {
			t.Errorf("rate %v: %d of %d wrong, first error %v", rate, all.Bad, all.Asked, out.First)
		}
	}
}

func TestClosedLoopKeepsAllConnectionsBusyBetweenRuns(t *testing.T) {
	o, err := NewOpen(OpenPlan{Addr: serve(t, ok), Conns: 8, Kinds: []Kind{askFor("/a/1k", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for run, opened := range []int{8, 0} {
		out, err := o.Run(t.Context(), Pace{For: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if all := out.Total(); all.Good != all.Asked || all.Good < 16 || out.Opened != opened {
			t.Errorf("run %d: %d of %d good, %d connections opened, want %d; first error %v", run, all.Good, all.Asked, out.Opened, opened, out.First)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	o, err := NewOpen(OpenPlan{Addr: serve(t, ok), Conns: 8, Kinds: []Kind{askFor("/a/1k", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := o.Run(ctx, Pace{Rate: 1000, For: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	out, err := o.Run(t.Context(), Pace{Rate: 1000, For: 50 * time.Millisecond})
	if err != nil || out.Total().Good != out.Total().Asked {
		t.Errorf("the next run: %v, %+v", err, out)
	}
}

func TestPlansThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct {
		plan OpenPlan
		want string
	}{
		{OpenPlan{Addr: "localhost:80", Conns: 1, Kinds: []Kind{{}}}, "IPv4"},
		{OpenPlan{Addr: "[::1]:80", Conns: 1, Kinds: []Kind{{}}}, "IPv4"},
		{OpenPlan{Addr: "127.0.0.1:80", Conns: 1}, "0 kinds"},
		{OpenPlan{Addr: "127.0.0.1:80", Kinds: []Kind{{}}}, "0 connections"},
		{OpenPlan{Addr: "127.0.0.1:80", Conns: 2, Apart: true, Kinds: make([]Kind, 3)}, "3 callers on 2 connections"},
	} {
		if _, err := NewOpen(c.plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.plan, err, c.want)
		}
	}
}

func TestWaitingCallsKeepTheirOrder(t *testing.T) {
	var q queue
	next := time.Duration(0)
	for i := range time.Duration(5000) {
		q.push(call{due: i})
		if i%3 == 0 {
			if got := q.pop().due; got != next {
				t.Fatalf("call %d, want %d", got, next)
			}
			next++
		}
	}
	for ; q.len() > 0; next++ {
		if got := q.pop().due; got != next {
			t.Fatalf("call %d, want %d", got, next)
		}
	}
	if next != 5000 {
		t.Errorf("%d calls came out, want 5000", next)
	}
}

// A client that was delayed must not send calls that are past their patience.
func TestCallsThatAreTooLateAreNotMade(t *testing.T) {
	var served atomic.Int64
	addr := serve(t, func(w io.Writer, path string) error {
		served.Add(1)
		return ok(w, path)
	})
	slow := askFor("/a/1k", 1)
	send, first := slow.Request, true
	slow.Request = func(dst []byte, n uint64) []byte {
		if first { // the client's own stall
			first = false
			<-time.After(300 * time.Millisecond)
		}
		return send(dst, n)
	}
	plan := OpenPlan{Addr: addr, Conns: 8, Patience: 50 * time.Millisecond, Kinds: []Kind{slow}}
	out := runOpen(t, plan, Pace{Rate: 500, For: 400 * time.Millisecond, Seed: 5})
	all := out.Total()
	if all.Late < all.Asked/3 || uint64(served.Load()) > all.Asked-all.Late+8 {
		t.Errorf("of %d calls %d were too late, and %d were made", all.Asked, all.Late, served.Load())
	}
	if lag := out.Lag.Max(); lag < 200*time.Millisecond {
		t.Errorf("the client says that it was late by %v", lag)
	}
}
