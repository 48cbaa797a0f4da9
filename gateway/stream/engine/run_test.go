package engine

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/streamstate"
)

const refusing = `"pipeline": {"processors": [{"label": "check", "mapping": "root = if content() == \"poison\" { throw(\"no\") } else { content() }"}]}`

func TestAPoisonMessageIsDeadLetteredAndItsNeighboursGoOn(t *testing.T) {
	p := newPeer()
	r := start(t, streamOf(outside, deadLetter+", "+refusing), p)
	poison := r.send("poison")
	for i := range 10 {
		if err := settled(t, r.send(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := settled(t, poison); err != nil {
		t.Error(err)
	}
	dead := wait(t, r.dead.came)
	if dead.Value(metaProcessor) != "check" || dead.Value(metaAttempts) != "3" || string(dead.Body) != "poison" {
		t.Errorf("%q %+v", dead.Body, dead.Meta)
	}
	if n := len(p.took()); n != 10 {
		t.Errorf("%d neighbours came through", n)
	}
}

func TestAPoisonMessageWithoutADeadLetterIsForTheSource(t *testing.T) {
	r := start(t, streamOf(outside, refusing), newPeer())
	if err := settled(t, r.send("poison")); stream.ClassOf(err) != stream.Refused {
		t.Error(err)
	}
}

func TestASenderThatWaitsLearnsOfARefusalAtOnce(t *testing.T) {
	r := start(t, streamOf(outside, refusing+", "+deadLetter), newPeer())
	m := &stream.Message{ID: "1", Body: []byte("poison"), Attempt: 1, Reply: new(stream.Reply)}
	if err := settled(t, r.sendMessage(m)); stream.ClassOf(err) != stream.Refused {
		t.Error(err)
	}
	if r.dead.took() != nil {
		t.Error("dead-lettered as well")
	}
}

func TestAFullStreamHasNoDemandUntilThereIsRoomAgain(t *testing.T) {
	p := newPeer()
	p.hold = true
	r := start(t, streamOf(outside, `"max_in_flight": 2`), p)
	first, second := r.send("1"), r.send("2")
	if r.in.flow.Demand().On() || r.in.flow.Take(&stream.Message{Body: []byte("3")}, func(error) {}) {
		t.Error("a full stream takes more")
	}
	if s := r.run.status(true); s.InFlight != 2 || s.OldestUnsettled <= 0 || len(s.Nodes) != 2 {
		t.Errorf("%+v", s)
	}
	p.release(nil)
	p.release(nil)
	if err := errors.Join(settled(t, first), settled(t, second)); err != nil {
		t.Error(err)
	}
	if !r.in.flow.Demand().On() {
		t.Error("an empty stream has no demand")
	}
}

func TestAMessageThatIsLargerThanTheRoomIsTakenAlone(t *testing.T) {
	r := newRoom(10, 100)
	if !r.enter(500) || r.demand.On() || r.enter(1) {
		t.Error("the room is not full")
	}
	r.leave(500)
	if !r.demand.On() || !r.enter(60) || r.enter(60) || r.demand.On() {
		t.Error("what does not fit does not close the room")
	}
	r.leave(60)
	if !r.demand.On() {
		t.Error("an empty room is closed")
	}
}

type panicking struct{ *peer }

func (p panicking) Write(m *stream.Message, settle stream.Settle) {
	if string(m.Body) == "bang" {
		panic("a fault")
	}
	p.peer.Write(m, settle)
}

func TestAPanicEndsOneMessage(t *testing.T) {
	p := newPeer()
	r := start(t, streamOf(outside, ""), p)
	r.run.out.(*burying).sink.(*retrying).sink.(*leaf).out = panicking{p}
	if err := settled(t, r.send("bang")); stream.ClassOf(err) != stream.Refused {
		t.Error(err)
	}
	if err := settled(t, r.send("1")); err != nil || !slices.Equal(p.took(), []string{"1"}) {
		t.Error(err, p.took())
	}
}

func TestADrainWaitsForWhatIsInTheStream(t *testing.T) {
	p := newPeer()
	p.hold = true
	r := start(t, streamOf(outside, ""), p)
	done := r.send("1")
	wait(t, p.came)
	over := make(chan struct{})
	go func() { r.drain(patience); close(over) }()
	<-r.in.stopped
	p.release(nil)
	wait(t, over)
	if err := settled(t, done); err != nil {
		t.Error(err)
	}
	if s := r.run.status(false); s.Phase != streamstate.Stopped || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

func TestWhatADrainDoesNotWaitForGoesBackToTheSource(t *testing.T) {
	p := newPeer(errAway, errAway)
	r := start(t, `{"input": `+inside+`, "output": `+outside+`, "retry": {"max_attempts": 0, "initial": "1h", "max": "1h"}}`, p)
	again := r.send("again") // its next attempt is an hour away
	wait(t, p.came)
	p.hold = true
	held := r.send("held")
	wait(t, p.came)
	r.drain(time.Millisecond)
	for _, done := range []<-chan error{again, held} {
		if err := settled(t, done); !errors.Is(err, stream.ErrClosed) {
			t.Error(err)
		}
	}
}
