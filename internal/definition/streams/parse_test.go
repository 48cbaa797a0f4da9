package streams_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/streams"
)

// parse returns the streams of an object, and its faults as texts.
func parse(t *testing.T, text string, o streams.Options) (all []streams.Stream, faults []string) {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("the test has no JSON: %s", text)
	}
	all, found := streams.Parse(json.RawMessage(text), o)
	for _, one := range found {
		faults = append(faults, one.Path+": "+one.Message)
	}
	return all, faults
}

const (
	post  = `"input": {"http_server": {"path": "/in"}}`
	get   = `"output": {"http_server": {"path": "/out"}}`
	queue = `"msgbroker": {"addresses": ["amqp://broker:5672"], "topics": ["orders"], "consumer_group": "feed"}`
)

func one(stream string) string { return `{"streams": {"s": {` + stream + `}}}` }

// Every rule is broken once, and named by its path. An empty want is a form that is right.
func TestProblemsAreNamed(t *testing.T) {
	send := func(connector string) string { return one(post + `, "output": {` + connector + `}`) }
	take := func(connector string) string { return one(`"input": {` + connector + `}, ` + get) }
	steps := func(processors string) string {
		return one(post + ", " + get + `, "pipeline": {"processors": [` + processors + `]}`)
	}
	kept := func(output, processors string, more ...string) string {
		return one(strings.Join(append(more, `"input": {"msgbroker": {"topics": ["a"], "addresses": ["kafka://a"]}}`,
			`"output": {"http_server": {`+output+`}}`, `"pipeline": {"processors": [`+processors+`]}`), ", "))
	}
	const in, out, steps0 = "streams.s.input.", "streams.s.output.", "streams.s.pipeline.processors[0]"
	for _, c := range []struct{ text, want string }{
		{one(post + ", " + get), ""},
		{`[]`, `: must be an object, not an array`},
		{`{"streams": 1}`, `streams: must be an object, not a number`},
		{`{"streams": {"s": 1}}`, `streams.s: must be an object, not a number`},
		{`{"streams": {"a b": {` + post + ", " + get + `}}}`, `streams["a b"]: must have a name of`},
		{`{"stream": {}, "streams": {"s": {` + post + ", " + get + `}}}`, `stream: unknown field; did you mean "streams"?`},
		{one(`"input": {"websocket_server": {"path": "/ws"}}, "output": {"websocket_server": {"path": "/ws"}}`), ``},
		{`{"streams": {"s": {"input": {"websocket_server": {"path": "/ws"}}, ` + get + `}, "t": {"input": {"http_server": {"path": "/post"}}, "output": {"websocket_server": {"path": "/ws"}}}}}`, `streams.t.output.websocket_server.path: GET /ws is already served by stream "s" (input)`},
		{one(get), `streams.s.input: is required`},
		{one(post), `streams.s.output: is required`},
		{one(post + ", " + get + ", " + get), `streams.s.output: stands twice`},
		{one(post + ", " + get + `, "buffer": {}`), `streams.s.buffer: is not supported; outputs say when`},
		{one(post + ", " + get + `, "max_in_fligth": 3`), `streams.s.max_in_fligth: unknown field; did you mean "max_in_flight"?`},
		{one(post + ", " + get + `, "max_in_flight": 0`), `streams.s.max_in_flight: must be a whole number from 1 to 4096`},
		{one(post + ", " + get + `, "max_in_flight": 1.5`), `streams.s.max_in_flight: must be a whole number from 1 to 4096`},
		{one(post + ", " + get + `, "max_message_bytes": "1MB"`), `streams.s.max_message_bytes: want bytes or a size such as "1MiB"`},
		{one(post + ", " + get + `, "max_message_bytes": "32MiB"`), `streams.s.max_message_bytes: must be from 1B to 16MiB`},
		{one(post + ", " + get + `, "max_message_bytes": "2MiB", "max_in_flight_bytes": "1MiB"`), `streams.s.max_in_flight_bytes: must be at least max_message_bytes (2MiB)`},
		{one(post + ", " + get + `, "drain_timeout": 5`), `streams.s.drain_timeout: want a duration such as "5s"`},
		{one(post + ", " + get + `, "drain_timeout": "1h"`), `streams.s.drain_timeout: must be from 0s to 10m`},
		{one(post + ", " + get + `, "retry": {"initial": "1m", "max": "1s"}`), `streams.s.retry.max: must not be shorter than initial (1m)`},
		{one(post + ", " + get + `, "retry": {"max_attempts": 0}`), `streams.s.retry.max_attempts: may be 0 (for ever) only if`},
		{one(post + ", " + get + `, "pipeline": {"threads": 4}`), `streams.s.pipeline.threads: is not supported; each message`},
		{one(post + ", " + get + `, "dead_letter": {"http_server": {}}`), `streams.s.dead_letter.http_server: is not supported; clients need not be there`},
		{one(post + ", " + get + `, "dead_letter": {"include_error": true}`), `streams.s.dead_letter: has no connector; want http_client`},

		{one(`"input": {"label": "in"}, ` + get), `streams.s.input: has no connector; want http_server, websocket_server`},
		{one(`"input": {"label": "In", "http_server": {}}, ` + get), in + `label: must be 1 to 64 of a-z, 0-9 and "_"`},
		{one(`"input": {"label": "a", "http_server": {"path": "/a"}}, "output": {"label": "a", "http_server": {}}`), out + `label: "a" is the label of input already`},
		{send(`"msgbroker": {"topic": "a"}, "http_server": {}`), `streams.s.output: has two connectors (http_server, msgbroker); choose one, or use broker`},
		{send(`"kafka": {}`), out + `kafka: is not supported; use msgbroker`},
		{take(`"portal_webhook": {}`), in + `portal_webhook: is not supported; it is an output`},
		{send(`"http_sever": {}`), out + `http_sever: unknown field; did you mean "http_server"?`},
		{send(`"http_server": 1`), out + `http_server: must be an object, not a number`},
		{send(`"http_server": null`), ``},

		{take(`"http_server": {"pth": "/a"}`), in + `http_server.pth: unknown field; did you mean "path"?`},
		{take(`"http_server": {"address": "a"}`), in + `http_server.address: is not supported; the gateway owns the listener; remove it`},
		{take(`"http_server": {"path": "a"}`), in + `http_server.path: must begin with "/"`},
		{take(`"http_server": {"path": "/a/../b"}`), in + `http_server.path: must not hold "." or ".."`},
		{take(`"http_server": {"path": "/a//b"}`), in + `http_server.path: must not hold "//"`},
		{take(`"http_server": {"path": "/a?b"}`), in + `http_server.path: must not hold a query`},
		{take(`"http_server": {"path": "/a%2f"}`), in + `http_server.path: must not hold spaces`},
		{take(`"http_server": {"path": "/x{a}"}`), in + `http_server.path: has a parameter that is not a whole segment`},
		{take(`"http_server": {"path": "/{a}/{a}"}`), in + `http_server.path: has the parameter "a" twice`},
		{take(`"http_server": {"path": "/` + strings.Repeat("a", 300) + `"}`), in + `http_server.path: has 301 bytes`},
		{take(`"http_server": {"path": 1}`), in + `http_server.path: must be a string, not a number`},
		{take(`"http_server": {"allowed_verbs": []}`), in + `http_server.allowed_verbs: is empty`},
		{take(`"http_server": {"allowed_verbs": ["post"]}`), in + `http_server.allowed_verbs[0]: "post" is unknown; write POST`},
		{take(`"http_server": {"allowed_verbs": ["POST", "POST"]}`), in + `http_server.allowed_verbs[1]: POST stands twice`},
		{take(`"http_server": {"allowed_verbs": ["TRACE"]}`), in + `http_server.allowed_verbs[0]: "TRACE" is unknown; want GET`},
		{take(`"http_server": {"timeout": "0s"}`), in + `http_server.timeout: must be from 1ms to 10m`},
		{take(`"http_server": {"rate_limit": "foo"}`), in + `http_server.rate_limit: want messages per duration such as "100/1s"`},
		{take(`"http_server": {"rate_limit": "100/1s"}`), ``},
		{take(`"http_server": {"sync_response": {"status": 700}}`), in + `http_server.sync_response.status: must be a status from 200 to 599`},
		{take(`"http_server": {"sync_response": {"status": "${! meta(\"s\") }", "headers": {"Content-Type": "text/plain"}}}`), ``},
		{take(`"http_server": {"sync_response": {"headers": {"Content-Length": "1"}}}`), in + `http_server.sync_response.headers.Content-Length: is set by the gateway`},
		{take(`"http_server": {"sync_response": {"headers": {"a b": "1"}}}`), in + `http_server.sync_response.headers["a b"]: must be a header name`},
		{take(`"http_server": {"sync_response": {"headers": {"A": "1", "a": "2"}}}`), in + `http_server.sync_response.headers.a: stands twice in different case`},
		{take(`"http_server": {"sync_response": {"headers": {"A": "b\r\nc"}}}`), in + `http_server.sync_response.headers.A: must not hold control characters`},
		{send(`"http_server": {"resume": true}`), out + `http_server.resume: needs a source that keeps messages`},
		{send(`"http_server": {"max_pending": 0}`), out + `http_server.max_pending: must be a whole number from 1 to 1024`},
		{send(`"websocket_server": {}`), out + `websocket_server.path: is required`},
		{send(`"websocket_server": {"path": "/a", "ws_path": "/b"}`), out + `websocket_server.ws_path: is another name of path`},
		{send(`"websocket_server": {"ws_path": "/b"}`), ``},
		{send(`"websocket_server": {"path": "/a", "ack": "json"}`), out + `websocket_server.ack: unknown field`},
		{take(`"websocket_server": {"path": "/a", "ack": "xml"}`), in + `websocket_server.ack: "xml" is unknown; want none or json`},
		{take(`"websocket_server": {"path": "/a", "allowed_origins": ["a.example"]}`), in + `websocket_server.allowed_origins[0]: must be an origin`},
		{take(`"websocket_server": {"path": "/a", "subprotocols": ["a b"]}`), in + `websocket_server.subprotocols[0]: must be the name`},

		{take(`"http_client": {}`), in + `http_client.url: is required`},
		{take(`"http_client": {"url": "ftp://a"}`), in + `http_client.url: must begin with http://`},
		{take(`"http_client": {"url": "http://u:p@a"}`), in + `http_client.url: must not hold a user or password; write auth.basic`},
		{take(`"http_client": {"url": "http://a b"}`), in + `http_client.url: must not hold spaces`},
		{take(`"http_client": {"url": "http://a:99999"}`), in + `http_client.url: must`},
		{take(`"http_client": {"url": "http://${! meta(\"h\") }/x"}`), ``},
		{take(`"http_client": {"url": "http://a", "rate_limit": "my_limit"}`), in + `http_client.rate_limit: want a duration: the time between two polls, such as "5s"; it is not the name of a resource`},
		{take(`"http_client": {"url": "http://a", "rate_limit": "10ms"}`), in + `http_client.rate_limit: must be at least 100ms`},
		{take(`"http_client": {"url": "http://a", "body": "x", "payload": "y"}`), in + `http_client.payload: is another name of body`},
		{take(`"http_client": {"url": "http://a", "payload": "y"}`), ``},
		{take(`"http_client": {"url": "http://a", "basic_auth": {}}`), in + `http_client.basic_auth: is not supported; write auth.basic`},
		{take(`"http_client": {"url": "http://a", "auth": {"basic": {"password": "p"}}}`), in + `http_client.auth.basic.user: is required`},
		{take(`"http_client": {"url": "http://a", "auth": {"basic": {"user": "u", "password": "p"}, "bearer": "t"}}`), in + `http_client.auth.bearer: excludes basic`},
		{take(`"http_client": {"url": "http://a", "drop_on": [1000]}`), in + `http_client.drop_on[0]: must be a status from 200 to 599`},
		{take(`"http_client": {"url": "http://a", "stream": {"codec": "lines"}}`), in + `http_client.stream.codec: is not supported`},
		{send(`"http_client": {"url": "http://a", "verb": "get"}`), out + `http_client.verb: "get" is unknown; write GET`},

		{take(`"msgbroker": {}`), in + `msgbroker.topics: is empty; name at least one topic`},
		{take(`"msgbroker": {"topics": []}`), in + `msgbroker.topics: is empty; name at least one topic`},
		{take(`"msgbroker": {"topics": ["a.*"]}`), in + `msgbroker.topics[0]: must not hold "*"`},
		{take(`"msgbroker": {"topics": ["a", "a"]}`), in + `msgbroker.topics[1]: "a" stands twice`},
		{take(`"msgbroker": {"topic": "a", "topics": ["a"]}`), in + `msgbroker.topic: is of outputs; write topics`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["nats://a"]}`), in + `msgbroker.addresses[0]: has an unknown scheme; want amqp://`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://"]}`), in + `msgbroker.addresses[0]: must be an address`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a:0"]}`), in + `msgbroker.addresses[0]: must have a port`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a?x=1"]}`), in + `msgbroker.addresses[0]: must not hold a query`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["kafka://a/b"]}`), in + `msgbroker.addresses[0]: must not hold a path`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["inproc://a"]}`), in + `msgbroker.addresses[0]: has a host`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a", "kafka://b"]}`), in + `msgbroker.addresses[1]: has another scheme`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://u:p@a", "amqp://v:p@b"]}`), in + `msgbroker.addresses[1]: has other credentials`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a/x", "amqp://b/y"]}`), in + `msgbroker.addresses[1]: has another virtual host`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a", "amqp://a:5672"]}`), in + `msgbroker.addresses[1]: stands twice`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://u:p@a"], "sasl": {"user": "u", "password": "p"}}`), in + `msgbroker.sasl: stands beside credentials`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a"], "sasl": {"password": "p"}}`), in + `msgbroker.sasl.user: is required`},
		{take(`"msgbroker": {"topics": ["a"], "tls": {"enabled": true}}`), in + `msgbroker.tls: has no effect with inproc://`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a"], "tls": {"skip_verify": true}}`), in + `msgbroker.tls.skip_verify: is set without TLS`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["kafka://a"], "retain": {"max_age": "1h"}}`), in + `msgbroker.retain: is of AMQP`},
		{take(`"msgbroker": {"topics": ["a"], "addresses": ["amqp://a"], "retain": {}}`), in + `msgbroker.retain: has no bound`},
		{take(`"msgbroker": {"topics": ["a b"], "addresses": ["kafka://a"]}`), in + `msgbroker.topics[0]: must be at most 249 letters`},
		{take(`"msgbroker": {"topics": ["a"], "queue": "b"}`), in + `msgbroker.queue: is not supported; write topics and consumer_group`},
		{send(`"msgbroker": {}`), out + `msgbroker.topic: is required`},
		{send(`"msgbroker": {"topics": ["a"]}`), out + `msgbroker.topics: is of inputs; write topic`},
		{send(`"msgbroker": {"topic": "a.#"}`), out + `msgbroker.topic: must not hold "*"`},
		{send(`"msgbroker": {"topic": "a.${! this.x }"}`), ``},
		{send(`"msgbroker": {"topic": "a", "unroutable": "drops"}`), out + `msgbroker.unroutable: "drops" is unknown; want error or drop; did you mean drop?`},

		{send(`"broker": {"outputs": []}`), out + `broker.outputs: is empty`},
		{send(`"broker": {}`), out + `broker.outputs: is empty`},
		{send(`"broker": {"copies": 2, "outputs": [{"msgbroker": {"topic": "a"}}]}`), out + `broker.copies: is not supported; streams run once`},
		{send(`"broker": {"copies": 1, "outputs": [{"msgbroker": {"topic": "a"}}]}`), ``},
		{send(`"broker": {"pattern": "fanout", "outputs": [{"msgbroker": {"topic": "a"}}]}`), out + `broker.pattern: "fanout" is unknown; want fan_out, fan_out_fail_fast, fan_out_sequential, round_robin or greedy; did you mean fan_out?`},
		{send(`"broker": {"outputs": [{"msgbroker": {"topic": ""}}]}`), out + `broker.outputs[0].msgbroker.topic: is required`},
		{take(`"broker": {"inputs": [{}]}`), in + `broker.inputs[0]: has no connector`},

		{send(`"portal_webhook": {"event_type": "Order", "portal_url": "https://a/b", "secret": "0123456789abcdef"}`), out + `portal_webhook.event_type: must be at most 128`},
		{send(`"portal_webhook": {"event_type": "key_event.created", "portal_url": "https://a/b", "secret": "0123456789abcdef"}`), out + `portal_webhook.event_type: must not begin with "key_event."`},
		{send(`"portal_webhook": {"event_type": "key_event", "portal_url": "https://a/b", "secret": "0123456789abcdef"}`), ``},
		{send(`"portal_webhook": {"event_type": "a", "portal_url": "a/b", "secret": "0123456789abcdef"}`), out + `portal_webhook.portal_url: must be a URL`},
		{send(`"portal_webhook": {"event_type": "a", "portal_url": "https://a/b", "secret": "short"}`), out + `portal_webhook.secret: must have at least 16 bytes`},
		{send(`"portal_webhook": {"event_type": "order.created", "portal_url": "https://a/b", "secret": "0123456789abcdef"}`), ``},

		{steps(`{}`), steps0 + `: has no processor; want mapping`},
		{steps(`{"mapping": "root = this", "log": {}}`), steps0 + `: has two processors (mapping, log); choose one`},
		{steps(`{"mapping": "root = ["}`), steps0 + `.mapping:1:`},
		{steps(`{"mapping": ""}`), steps0 + `.mapping: is empty`},
		{steps(`{"mapping": {}}`), steps0 + `.mapping: must be the text of a script`},
		{steps(`{"bloblang": "root = this"}`), ``},
		{steps(`{"mutation": "root = this"}`), steps0 + `.mutation: is not supported; use mapping`},
		{steps(`{"maping": "root = this"}`), steps0 + `.maping: unknown field; did you mean "mapping"?`},
		{steps(`{"mapping": "root = this", "on_error": "ignore"}`), steps0 + `.on_error: "ignore" is unknown; want reject, pass or drop`},
		{steps(`{"filter": "this.a > 1"}`), ``},
		{steps(`{"filter": {"check": "this.a > 1"}}`), ``},
		{steps(`{"filter": {}}`), steps0 + `.filter.check: is required`},
		{steps(`{"branch": {"result_map": "root = this"}}`), steps0 + `.branch.processors: is empty`},
		{steps(`{"branch": {"processors": [{"mapping": "root = ["}]}}`), steps0 + `.branch.processors[0].mapping:1:`},
		{steps(`{"switch": []}`), steps0 + `.switch: is empty`},
		{steps(`{"switch": {"cases": []}}`), steps0 + `.switch.cases: is empty`},
		{steps(`{"switch": "a"}`), steps0 + `.switch: must be an object with cases`},
		{steps(`{"switch": [{"check": "this.a == 1", "processors": [{"mapping": "root = 1"}]}, {"processors": [{"log": {"message": "a"}}]}]}`), ``},
		{steps(`{"switch": {"cases": [{"fallthrough": true, "continue": true}]}}`), steps0 + `.switch.cases[0].continue: excludes fallthrough`},
		{steps(`{"http": {"url": "https://a"}}`), ``},
		{steps(`{"http": {"url": "https://a", "rate_limit": "a"}}`), steps0 + `.http.rate_limit: is not supported`},
		{steps(`{"batch": {}}`), steps0 + `.batch: would never be complete`},
		{steps(`{"batch": {"max_bytes": "1MiB"}}`), steps0 + `.batch: would never be complete`},
		{steps(`{"batch": {"count": 300}}`), steps0 + `.batch.count: is more than the 256 messages`},
		{steps(`{"batch": {"count": 300, "period": "1s"}}`), ``},
		{steps(`{"dead_letter": {}}`), steps0 + `.dead_letter: has nowhere to send messages`},
		{steps(`{"split": {"size": 1}}`), steps0 + `.split.size: is not supported`},
		{steps(`{"log": {"level": "trace"}}`), steps0 + `.log.level: "trace" is unknown`},
		{steps(`{"sync_response": {}}`), ``},
		{one(`"input": {` + queue + `}, ` + get + `, "pipeline": {"processors": [{"sync_response": {}}]}`), steps0 + `.sync_response: has nobody to answer`},
		{one(`"input": {` + queue + `}, ` + get + `, "retry": {"max_attempts": 0}`), ``},
		{one(`"input": {` + queue + `}, "output": {"http_server": {"resume": true, "path": "/a"}}`), out + `http_server.resume: needs a source that keeps messages`},
		{one(`"input": {"msgbroker": {"topics": ["a"], "addresses": ["kafka://a"]}}, "output": {"http_server": {"resume": true, "path": "/a"}}`), ``},
		{one(`"input": {"msgbroker": {"topics": ["a"], "addresses": ["amqp://a"], "retain": {"max_bytes": "1GiB"}}}, "output": {"broker": {"outputs": [{"http_server": {"resume": true, "path": "/a"}}]}}`), out + `broker.outputs[0].http_server.resume: must be of the only output`},
		{kept(`"resume": true`, ``), ``},
		{kept(`"resume": true, "stream_path": "/a"`, `{"filter": "this.a"}`), ``},
		{kept(`"resume": true, "ws_path": "/a"`, ``), out + `http_server.resume: is of events only, and ws_path serves WebSocket`},
		{kept(`"resume": true, "path": "/a", "stream_path": "/b"`, ``), out + `http_server.resume: is of events only, which stream_path serves`},
		{one(`"input": {"msgbroker": {"topics": ["a"], "addresses": ["kafka://a"], "consumer_group": "g"}}, "output": {"http_server": {"resume": true}}`), in + `msgbroker.consumer_group: has no use with resume`},
		{kept(`"resume": true`, `{"batch": {"count": 2}}`), steps0 + `.batch: cannot be used with resume`},
		{kept(`"resume": true`, `{"dead_letter": {}}`), steps0 + `.dead_letter: has nowhere to send messages`},
		{kept(`"resume": true`, ``, `"dead_letter": {"msgbroker": {"topic": "b"}}`), `streams.s.dead_letter: has no use with resume`},
	} {
		_, got := parse(t, c.text, streams.Options{})
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s\n got %q", c.text, got)
		case c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)):
			t.Errorf("%s\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}
