package control

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
)

// onWire hands every call to the gateway API, as a gateway does with those on
// the paths of the API.
type onWire struct{ api *API }

func (o onWire) Handle(call *wire.Call) { o.api.Handle(call.Ctx()) }

func (o onWire) Refuse(call *wire.Call, fault *wire.Fault) {
	call.Answer.Status, call.Answer.Body = fault.Status, []byte(fault.Text)
}

// overWire has b's client speak to the server that traffic has.
func (b *bench) overWire() {
	b.t.Helper()
	server := wire.New(wire.Config{
		MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 8 << 20,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}, onWire{b.api}, log.New(io.Discard, "", 0))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	go func() { _ = server.Serve(ln) }() // ends with Shutdown
	b.t.Cleanup(func() {
		b.client.CloseIdleConnections()
		_ = server.Shutdown(b.t.Context())
	})
	transport := b.client.Transport.(*http.Transport).Clone()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", ln.Addr().String())
	}
	transport.DisableKeepAlives = false
	b.client.Transport = transport
}

func TestTheGatewayAPIOnTheTrafficPort(t *testing.T) {
	b := onFiles(t)
	b.overWire()
	large := definitionOf("weather", `"graphql":{"schema":"`+strings.Repeat("x", 1<<20)+`"},`)
	b.want("POST", "/svc/apis", large, 200, done("weather", "added"))
	b.reload()
	if got := b.call("GET", "/svc/apis/weather", ""); got.status != 200 || len(got.body) < 1<<20 {
		t.Errorf("got %d, %d bytes", got.status, len(got.body))
	}
	b.want("POST", "/svc/apis", strings.Repeat(" ", maxBody+1), 413, failed("The body is larger than 4194304 bytes"))
	for _, size := range []int{10, 10_000, 100_000} {
		if got := b.send("POST", "/svc/apis", strings.Repeat("x", size), nil); got.status != 403 {
			t.Errorf("%d bytes without the secret: %d %s", size, got.status, got.body)
		}
	}
	made := b.create("/svc/keys", aKey)
	b.want("DELETE", "/svc/keys/"+made.Key, "", 200, done(made.Key, "deleted"))
	b.want("GET", "/svc/apis/..%2fkeys", "", 404, failed("API not found"))
	if got := b.send("GET", "/hello", "", nil); got.status != 200 {
		t.Errorf("hello: %d %s", got.status, got.body)
	}
}
