package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// A key can be revoked between the answer to a handshake and the first look at the
// connection.
func TestAConnectionThatIsCutBeforeItIsServedEnds(t *testing.T) {
	client, ours := net.Pipe()
	defer client.Close()
	s := &socket{gateway: &Gateway{observe: observe.New(observe.Options{})}, shown: new(live.Member)}
	s.cut(errors.New("revoked"))
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(ours, nil, &live.Options{Limits: live.Limits{Operations: 1, MaxMessage: 1, MaxQueued: 1, InitTimeout: time.Hour, Heartbeat: time.Hour, WriteWithin: time.Minute}})
		_ = ours.Close()
	}()
	_ = client.SetReadDeadline(time.Now().Add(30 * time.Second))
	frame := make([]byte, 2+2+len("revoked"))
	if _, err := io.ReadFull(client, frame); err != nil || !bytes.Equal(frame, append([]byte{0x88, 9, 0x11, 0x33}, "revoked"...)) {
		t.Errorf("the connection ends with %q, %v; want a close frame with 4403", frame, err)
	}
	_ = client.Close()
	<-served
}

// A gateway that stops opens no connection that it would have to end at once.
func TestAGatewayThatStopsRefusesHandshakes(t *testing.T) {
	g := &Gateway{}
	g.stopping.Store(true)
	ex := pipeline.For(&wire.Call{})
	defer ex.Release()
	ex.Opening = &pipeline.Opening{Protocol: "graphql-ws"}
	if s, v := g.openSocket(ex); s != nil || v != pipeline.Rejected || ex.Rejection.Status != 503 || ex.RetryAfter == 0 || !ex.Answer.Close {
		t.Errorf("opens %v: %d, %+v", s, v, ex.Rejection)
	}
}
