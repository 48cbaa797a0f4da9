package stream

import "github.com/sluicegate/sluice/gateway/pipeline"

// A Server is an Input or Output that answers requests of clients of the API. Two of one
// stream may have a route for the same path if one is an input, the other an output, and
// both are for WebSocket: they share the connection.
type Server interface {
	// Routes returns what it answers. It is called once, before Start.
	Routes() []Route
}

// A Route is a path that a connector answers.
type Route struct {
	Path      string   // below the listen path of the API; {name} stands for one segment
	Verbs     []string // upper-case; HEAD is answered where GET is
	WebSocket bool     // only requests for WebSocket are answered

	// Serve answers an exchange of the path and one of the verbs, on the goroutine of its
	// connection, which it may hold. It is not called for dry runs. path are the values of
	// the segments with names. Serve may set Exchange.Cut.
	Serve func(ex *pipeline.Exchange, path []Meta) pipeline.Verdict
}

// A Starter is an Output that has to connect. Start is called once, after all connectors of
// the stream were made and before its inputs are started. It does not wait.
type Starter interface{ Start() }

// A Joiner is an Input for WebSocket that shares its connections with an Output of the same
// stream and path. Join is called before Routes with each output that is a Server, and
// reports whether they share connections: the output's routes for WebSocket are left out
// then.
type Joiner interface{ Join(out Output) bool }
