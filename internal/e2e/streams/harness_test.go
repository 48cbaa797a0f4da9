package streams

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// testSecret is the gateway API's.
const testSecret = "secret-of-the-stream-tests"

// A gateway serves definitions with event streams from files.
type gateway struct {
	*rig.Server
	apps string
}

func newGateway(t testing.TB, with settings, apis ...object) *gateway {
	t.Helper()
	dir := rig.DataDir(t)
	g := &gateway{apps: filepath.Join(dir, "apps")}
	if err := os.MkdirAll(g.apps, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		g.save(t, api)
	}
	g.Server = rig.NewGateway(t, rig.Merge(settings{
		"data_dir": dir, "gateway.apps_dir": g.apps, "secret": testSecret,
		"streaming.enabled": "true", "streaming.allow_addresses": "127.0.0.0/8", "gateway.websockets": "true",
		"overload.target_delay": "0s", // other tests keep the machine busy
	}, with))
	g.StartReady()
	return g
}

// save writes a definition, which the gateway notices if it runs.
func (g *gateway) save(t testing.TB, api object) {
	t.Helper()
	rig.SaveJSON(t, filepath.Join(g.apps, fmt.Sprint(api["api_id"], ".json")), api)
}

// newKey makes a key by the gateway API.
func (g *gateway) newKey(session object) string {
	g.T.Helper()
	var made struct{ Key string }
	got := rig.Call(g.T, http.MethodPost, g.Control+"/svc/keys", session, "X-Svc-Authorization", testSecret)
	if got.Status != http.StatusOK {
		g.T.Fatalf("making a key: %s", got)
	}
	got.Into(g.T, &made)
	return rig.Plant(made.Key)
}

// metric waits until a line of the metrics begins with a text, and returns its value.
func (g *gateway) metric(line string) float64 {
	g.T.Helper()
	var value float64
	rig.Eventually(g.T, line, func() (err error) {
		value, err = g.metricNow(line)
		return err
	})
	return value
}

func (g *gateway) metricNow(line string) (float64, error) {
	got, err := rig.Send(http.MethodGet, g.Telemetry+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	for one := range strings.Lines(got.Body) {
		if rest, ok := strings.CutPrefix(one, line+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", line)
}

// up waits until a connector of a stream works, or waits for demand.
func (g *gateway) up(api, name, connector, side string) {
	g.T.Helper()
	line := fmt.Sprintf("sluice_stream_connector_up{api=%q,connector=%q,side=%q,stream=%q}", api, connector, side, name)
	rig.Eventually(g.T, line, func() error {
		if on, err := g.metricNow(line); err != nil || on != 1 {
			return fmt.Errorf("%v: %w", on, err)
		}
		return nil
	})
}

// streamAPI returns a definition with event streams below /<id>/.
func streamAPI(id string, keyless bool, all object) object {
	api := rig.APIDef(id, "", keyless)
	api["x-svc-streaming"] = object{"streams": all}
	return api
}

// flow is a stream from an input to an output.
func flow(input, output object, more ...object) object {
	s := object{"input": input, "output": output}
	for _, one := range more {
		maps.Copy(s, one)
	}
	return s
}

// steps are processors.
func steps(all ...object) object { return object{"pipeline": object{"processors": all}} }

func posted(path string) object {
	return object{"http_server": object{"path": path, "timeout": "30s"}}
}

func served(path string) object { return object{"http_server": object{"path": path}} }

// A topic is one of a broker, with an exchange of its own.
type topic struct {
	broker *testenv.Broker
	name   string
}

func newTopic(t testing.TB, b *testenv.Broker) topic {
	t.Helper()
	return topic{b, "e2e." + stream.NewID()}
}

func (p topic) fields() object {
	return object{"addresses": []string{"amqp://" + p.broker.Addr}, "exchange": p.name + ".x"}
}

// published is an output to the topic.
func (p topic) published() object {
	f := p.fields()
	f["topic"] = p.name
	return object{"msgbroker": f, "label": "publish"}
}

// consumed is an input from the topic.
func (p topic) consumed(group string) object {
	f := p.fields()
	f["topics"], f["consumer_group"] = []string{p.name}, group
	return object{"msgbroker": f, "label": "consume"}
}

// An event is a message that came as one.
type event struct{ id, name, data string }

// A listener is a client that gets events.
type listener struct {
	t      testing.TB
	events chan event
	ended  chan struct{} // closed at the end of the connection
	cancel func()
}

// listen opens an event stream.
func (g *gateway) listen(path string, headers ...string) *listener {
	g.T.Helper()
	l, status, err := listenAt(g.T, g.Traffic+path, make(chan event, 1000), headers...)
	if err != nil || status != http.StatusOK {
		g.T.Fatalf("GET %s: %d %v", path, status, err)
	}
	return l
}

// listenAt opens an event stream, of which events get the events. It returns once the first
// bytes have come.
func listenAt(t testing.TB, url string, events chan event, headers ...string) (l *listener, status int, err error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, resp.StatusCode, nil
	}
	l = &listener{t: t, events: events, ended: make(chan struct{}), cancel: func() { resp.Body.Close() }}
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			resp.Body.Close()
			return nil, 0, err
		}
		if line == "\n" {
			break
		}
	}
	t.Cleanup(l.cancel)
	go func() {
		defer close(l.ended)
		defer l.cancel()
		l.read(in)
	}()
	return l, resp.StatusCode, nil
}

func (l *listener) read(in *bufio.Reader) {
	var e event
	var data []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n" && data != nil:
			e.data = strings.Join(data, "\n")
			l.events <- e
			e, data = event{}, nil
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			data = append(data, value)
		}
	}
}

// next waits for an event.
func (l *listener) next() event {
	l.t.Helper()
	select {
	case e := <-l.events:
		return e
	case <-time.After(rig.Patience):
		l.t.Fatal("no event has come")
		return event{}
	}
}

// awaitEnd waits for the end of the connection.
func (l *listener) awaitEnd() {
	l.t.Helper()
	select {
	case <-l.ended:
	case <-time.After(rig.Patience):
		l.t.Fatal("the connection has not ended")
	}
}

// post sends a message and fails the test unless the answer has a status.
func (g *gateway) post(want int, path, body string, headers ...string) rig.Answer {
	g.T.Helper()
	got := rig.Call(g.T, http.MethodPost, g.Traffic+path, body, headers...)
	if got.Status != want {
		g.T.Fatalf("POST %s: %s, want %d", path, got, want)
	}
	return got
}

// socket opens a WebSocket connection.
func (g *gateway) socket(path string, header http.Header) *websocket.Conn {
	g.T.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(g.Traffic, "http")+path, header)
	if err != nil {
		g.T.Fatalf("%s: %v, %+v", path, err, resp)
	}
	g.T.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(rig.Patience))
	return conn
}

// read returns the next message of a WebSocket connection.
func read(t testing.TB, conn *websocket.Conn) string {
	t.Helper()
	_, text, err := conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drained reads a body to its end.
func drained(r io.ReadCloser) string {
	defer r.Close()
	text, _ := io.ReadAll(r) // what came counts
	return string(text)
}
