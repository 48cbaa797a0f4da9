package streams_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/streams"
)

// What a stream serves, by the members of its connectors.
func TestRoutesOfAStream(t *testing.T) {
	const (
		publish = `{"msgbroker":{"addresses":["inproc://"],"topic":"t"}}`
		consume = `{"msgbroker":{"addresses":["inproc://"],"topics":["t"],"consumer_group":"g"}}`
		kept    = `{"msgbroker":{"addresses":["kafka://k:9092"],"topics":["t"]}}`
	)
	for _, c := range []struct{ input, output, want string }{
		{`{"http_server":{"path":"/in"}}`, publish, "POST /in takes single"},
		{`{"http_server":{}}`, publish, "POST /post takes single; GET /post/ws takes websocket"},
		{`{"http_server":{"path":"/in","allowed_verbs":["POST","PUT"]}}`, publish, "POST,PUT /in takes single"},
		{consume, `{"http_server":{"path":"/out"}}`, "GET /out gives single events websocket"},
		{consume, `{"http_server":{}}`, "GET /get gives single; GET /get/stream gives events lines; GET /get/ws gives websocket"},
		{consume, `{"http_server":{"path":"/a","stream_path":"/b"}}`, "GET /a gives single; GET /b gives events lines"},
		{kept, `{"http_server":{"path":"/a","resume":true}}`, "GET /a gives events resume"},
		{kept, `{"http_server":{"resume":true}}`, "GET /get/stream gives events resume"},
		{`{"websocket_server":{"path":"/ws","ack":"json"}}`, `{"websocket_server":{"path":"/ws"}}`, "GET /ws takes gives websocket ack"},
		{
			`{"broker":{"inputs":[{"http_server":{"path":"/a"}},` + consume + `]}}`, `{"broker":{"pattern":"fan_out","outputs":[` + publish + `,{"http_server":{"ws_path":"/b"}}]}}`,
			"POST /a takes single; GET /b gives websocket",
		},
		{consume, publish, ""},
	} {
		all, faults := streams.Parse(fmt.Appendf(nil, `{"streams":{"s":{"input":%s,"output":%s}}}`, c.input, c.output), streams.Options{})
		if len(faults) > 0 {
			t.Errorf("%s, %s: %v", c.input, c.output, faults)
			continue
		}
		var got []string
		for _, r := range all[0].Routes() {
			var text strings.Builder
			text.WriteString(strings.Join(r.Verbs, ",") + " " + r.Path)
			for _, is := range []struct {
				on   bool
				word string
			}{{r.Takes, " takes"}, {r.Gives, " gives"}, {r.Has(streams.WaySingle), " single"}, {r.Has(streams.WayEvents), " events"}, {r.Has(streams.WayLines), " lines"}, {r.Has(streams.WaySocket), " websocket"}, {r.Resume, " resume"}, {r.Ack, " ack"}} {
				if is.on {
					text.WriteString(is.word)
				}
			}
			got = append(got, text.String())
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s, %s: %q, not %q", c.input, c.output, got, c.want)
		}
	}
}
