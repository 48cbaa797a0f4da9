package engine

import (
	"errors"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/gateway/stream"
)

var (
	errAway  = stream.Failf(stream.Transient, "away")
	errNever = stream.Failf(stream.Permanent, "never")
)

func TestAnOutputThatFailsForAWhileGetsEachMessageInTheEnd(t *testing.T) {
	away := newPeer(errAway, errAway)
	r := start(t, streamOf(outside, ""), away)
	if err := settled(t, r.send("1")); err != nil {
		t.Error(err)
	}
	if got := away.took(); !slices.Equal(got, []string{"1"}) {
		t.Error(got)
	}
	if n := r.run.connectors[1].site.State.Errors[stream.Transient].Load(); n != 2 {
		t.Errorf("%d errors recorded, want 2", n)
	}
}

func TestTheSourceLearnsWhatNoOutputTakes(t *testing.T) {
	for name, err := range map[string]error{"after the attempts": errAway, "at once": errNever} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(err, err, err)
			r := start(t, streamOf(outside, ""), p)
			if got := settled(t, r.send("1")); !errors.Is(got, err.(*stream.Failure).Err) || stream.ClassOf(got) != stream.ClassOf(err) {
				t.Errorf("settled with %v", got)
			}
			if left := len(p.errs); left != map[string]int{"after the attempts": 0, "at once": 2}[name] {
				t.Errorf("%d errors left", left)
			}
		})
	}
}

func TestAFailingOutputOfAFanOutDoesNotRepeatTheOthers(t *testing.T) {
	fine, failing := newPeer(), newPeer(errAway, errAway)
	r := start(t, streamOf(several("fan_out", 2), ""), fine, failing)
	if err := settled(t, r.send("1")); err != nil {
		t.Error(err)
	}
	if !slices.Equal(fine.took(), []string{"1"}) || !slices.Equal(failing.took(), []string{"1"}) {
		t.Error(fine.took(), failing.took())
	}
}

func TestAFanOutIsSettledAfterItsLastOutput(t *testing.T) {
	fast, slow := newPeer(), newPeer()
	slow.hold = true
	r := start(t, streamOf(several("fan_out", 2), ""), fast, slow)
	done := r.send("1")
	wait(t, slow.came)
	select {
	case err := <-done:
		t.Fatalf("settled with %v before both outputs had the message", err)
	default:
	}
	slow.release(nil)
	if err := settled(t, done); err != nil {
		t.Error(err)
	}
}

func TestAnOutputOfAFanOutThatNeverTakesAMessageHasItDeadLettered(t *testing.T) {
	fine, never := newPeer(), newPeer(errNever)
	r := start(t, streamOf(several("fan_out", 2), deadLetter), fine, never)
	if err := settled(t, r.send("1")); err != nil {
		t.Error(err)
	}
	dead := wait(t, r.dead.came)
	if dead.Value(metaOutput) != "output.broker.outputs[1]" || dead.Value(metaStream) != "s" || dead.Value(metaError) == "" || string(dead.Body) != "1" {
		t.Errorf("%q %+v", dead.Body, dead.Meta)
	}
	if !slices.Equal(fine.took(), []string{"1"}) {
		t.Error(fine.took())
	}
}

func TestAFanOutThatFailsFastSettlesWithTheFirstError(t *testing.T) {
	slow, failing := newPeer(), newPeer(errAway)
	slow.hold = true
	r := start(t, streamOf(several("fan_out_fail_fast", 2), ""), slow, failing)
	if err := settled(t, r.send("1")); stream.ClassOf(err) != stream.Transient || err == nil {
		t.Error(err)
	}
	slow.release(nil)
}

func TestASequenceAsksTheNextOutputAfterTheOneBefore(t *testing.T) {
	first, second := newPeer(), newPeer()
	first.hold = true
	r := start(t, streamOf(several("fan_out_sequential", 2), ""), first, second)
	done := r.send("1")
	wait(t, first.came)
	if got := second.took(); got != nil {
		t.Errorf("asked already: %q", got)
	}
	first.release(errAway) // a repeat starts from the first
	wait(t, first.came)
	first.release(nil)
	if err := settled(t, done); err != nil || !slices.Equal(second.took(), []string{"1"}) {
		t.Error(err, second.took())
	}
}

func TestOutputsTakeTurns(t *testing.T) {
	a, b := newPeer(), newPeer()
	r := start(t, streamOf(several("round_robin", 2), ""), a, b)
	for _, body := range []string{"1", "2", "3", "4"} {
		if err := settled(t, r.send(body)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a.took(), []string{"1", "3"}) || !slices.Equal(b.took(), []string{"2", "4"}) {
		t.Error(a.took(), b.took())
	}
	a.mu.Lock()
	a.errs = []error{errAway}
	a.mu.Unlock()
	if err := settled(t, r.send("5")); err != nil {
		t.Fatal(err)
	}
	if got := b.took(); got[len(got)-1] != "5" {
		t.Errorf("the message that one refused did not reach the other: %q", got)
	}
}

func TestTheFirstOutputThatHasDemandTakesAGreedyMessage(t *testing.T) {
	busy, free := newPeer(), newPeer()
	busy.level.Set(false)
	r := start(t, streamOf(several("greedy", 2), ""), busy, free)
	if err := settled(t, r.send("1")); err != nil || !slices.Equal(free.took(), []string{"1"}) {
		t.Error(err, busy.took(), free.took())
	}
	free.level.Set(false)
	if r.in.flow.Demand().On() {
		t.Error("there is demand without any")
	}
	busy.level.Set(true)
	if !r.in.flow.Demand().On() {
		t.Error("there is no demand, with that of one output")
	}
}

func TestASenderThatWaitsGetsTheErrorInPlaceOfADeadLetter(t *testing.T) {
	r := start(t, streamOf(outside, deadLetter), newPeer(errNever))
	m := &stream.Message{ID: "1", Body: []byte("1"), Attempt: 1, Reply: new(stream.Reply)}
	if err := settled(t, r.sendMessage(m)); stream.ClassOf(err) != stream.Permanent || err == nil {
		t.Error(err)
	}
	if got := r.dead.took(); got != nil {
		t.Errorf("dead-lettered as well: %q", got)
	}
}

func TestADeadLetterIsTriedUntilItIsTaken(t *testing.T) {
	r := start(t, streamOf(outside, deadLetter), newPeer(errNever))
	r.dead.mu.Lock()
	r.dead.errs = []error{errAway, errNever, errAway, errAway, errAway, errAway}
	r.dead.mu.Unlock()
	if err := settled(t, r.send("1")); err != nil || !slices.Equal(r.dead.took(), []string{"1"}) {
		t.Error(err, r.dead.took())
	}
}
