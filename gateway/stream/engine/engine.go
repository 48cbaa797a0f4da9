// Package engine runs event streams: it puts inputs, processors and outputs together, moves
// messages from one to the other, and settles them with their source once every output that
// must take them has done so. Streams that a change of configuration does not concern go on
// untouched.
//
// An engine without streams has no goroutine and opens no file.
package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"weak"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/connectors"
	"github.com/sluicegate/sluice/gateway/stream/subscribers"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// Options configure an Engine.
type Options struct {
	Parse      streams.Options // how definitions are read
	Dial       stream.Dialer   // guarded
	WebSockets bool            // clients may use WebSocket
	MaxStreams int
	MaxBytes   int    // of unsettled messages of all streams
	Dir        string // of the journal of the in-process broker; "": its messages are kept in memory
	Log        *slog.Logger
}

// An Engine has the streams of one gateway. A nil Engine serves none: their paths answer
// 404. It is safe for concurrent use.
type Engine struct {
	parse      streams.Options
	dial       stream.Dialer
	webSockets bool
	maxStreams int
	log        *slog.Logger
	connectors *connectors.Set
	room       *room // of all streams
	aside      bool  // it compiles streams that are never started

	mu       sync.Mutex
	running  map[string]*running              // by key, of APIs in service
	compiled map[string]weak.Pointer[running] // by key, of APIs that have not entered service
	stopping bool
	draining sync.WaitGroup
	left     map[*running]context.CancelFunc // that drain
}

// New returns an engine without streams.
func New(o Options) *Engine {
	o.Parse.SkipScripts = true // the processors compile them
	return &Engine{
		parse: o.Parse, dial: o.Dial, webSockets: o.WebSockets, maxStreams: o.MaxStreams, log: o.Log,
		connectors: connectors.New(connectors.Options{Dir: o.Dir, Kept: o.MaxBytes / keptShare, Dial: o.Dial, Log: o.Log}),
		room:       newRoom(0, o.MaxBytes), running: make(map[string]*running), compiled: make(map[string]weak.Pointer[running]), left: make(map[*running]context.CancelFunc),
	}
}

// Aside returns an engine that compiles the streams of an API without side effects, for
// explanations.
func (e *Engine) Aside() *Engine {
	if e == nil {
		return nil
	}
	return &Engine{
		parse: e.parse, dial: e.dial, webSockets: e.webSockets, maxStreams: e.maxStreams,
		log: slog.New(slog.DiscardHandler), connectors: connectors.New(connectors.Options{Dial: e.dial}), room: newRoom(0, e.room.bytes), running: make(map[string]*running), compiled: make(map[string]weak.Pointer[running]), aside: true,
	}
}

// Compile compiles the streams of a definition. Those that run already, with the same
// configuration, are taken over; others start when the API enters service (see Swap). It
// returns nil if the API has no streams.
func (e *Engine) Compile(def *definition.API) (*Stage, error) {
	if !def.HasStreams() {
		return nil, nil
	}
	if e == nil {
		return &Stage{}, nil
	}
	confs, err := def.Streams(e.parse)
	if err != nil {
		return nil, err
	}
	var all []*running
	for i := range confs {
		r, err := e.find(def, &confs[i])
		if err != nil {
			return nil, fmt.Errorf("x-svc-streaming.streams.%s: %w", confs[i].Name, err)
		}
		all = append(all, r)
	}
	return newStage(e, all), nil
}

// Topics compiles a data source of the kind definition.BrokerSource, as Compile does streams.
// The stage begins a subscription.
func (e *Engine) Topics(def *definition.API, name string, c *definition.GraphQLSourceConfig) (pipeline.Stage, error) {
	if e == nil {
		return nil, errors.New("event streams are not enabled in this gateway, which msgbroker needs: set streaming.enabled")
	}
	conf, err := def.Topics(name, c, e.parse)
	if err != nil {
		return nil, err
	}
	r, err := e.find(def, conf)
	if err != nil {
		return nil, err
	}
	return &topics{r}, nil
}

// topics are a data source.
type topics struct{ run *running }

// Handle implements pipeline.Stage.
func (t *topics) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	for _, c := range t.run.connectors {
		if out, ok := c.out.(*subscribers.Output); ok {
			return out.Handle(ex)
		}
	}
	panic("a stream of topics without subscribers")
}

// find returns the running stream of a configuration, or a new one.
func (e *Engine) find(def *definition.API, conf *streams.Stream) (*running, error) {
	key, err := keyOf(def, conf)
	if err != nil {
		return nil, err
	}
	known, full := e.known(key)
	switch {
	case known != nil:
		return known, nil
	case full && !e.aside:
		return nil, fmt.Errorf("the gateway has %d streams already, the most that streaming.max_streams allows", e.maxStreams)
	}
	r, err := e.newRunning(key, def.OrgID, def.ID, conf)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.compiled[key] = weak.Make(r)
	return r, nil
}

// known returns the stream of a key, nil if there is none, and whether there are as many
// streams as there may be. Those of APIs that never enter service are forgotten.
func (e *Engine) known(key string) (r *running, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.running[key]; r != nil {
		return r, false
	}
	if r := e.compiled[key].Value(); r != nil {
		return r, false
	}
	if len(e.running)+len(e.compiled) >= e.maxStreams {
		maps.DeleteFunc(e.compiled, func(_ string, r weak.Pointer[running]) bool { return r.Value() == nil })
	}
	return nil, len(e.running)+len(e.compiled) >= e.maxStreams
}

// keyOf identifies a stream with its configuration.
func keyOf(def *definition.API, conf *streams.Stream) (string, error) {
	text, err := json.Marshal(struct {
		Org, API string
		Conf     *streams.Stream
	}{def.OrgID, def.ID, conf})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

// Swap starts the streams of APIs that have entered service, and stops those that no API in
// service has any more. A stream that both have goes on. It does not wait.
func (e *Engine) Swap(came, gone []*pipeline.API) {
	if e == nil {
		return
	}
	for _, api := range came {
		for _, r := range streamsOf(api) {
			if e.enter(r) {
				r.start()
			}
		}
	}
	for _, api := range gone {
		for _, r := range streamsOf(api) {
			e.leave(r)
		}
	}
}

// A sourceHolder is a data graph: its sources may be topics.
type sourceHolder interface {
	Topics() []pipeline.Stage
}

// streamsOf returns the streams of a compiled API.
func streamsOf(api *pipeline.API) (all []*running) {
	if api.Version == nil {
		return nil
	}
	if s, ok := api.Version.Forward.(*Stage); ok {
		return s.streams
	}
	if graph, ok := api.Version.Upstream.(sourceHolder); ok {
		for _, one := range graph.Topics() {
			all = append(all, one.(*topics).run)
		}
	}
	return all
}

// enter counts an API that has a stream, and reports whether it is the first.
func (e *Engine) enter(r *running) (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return false
	}
	r.refs++
	if r.refs == 1 {
		e.running[r.key] = r
		delete(e.compiled, r.key)
	}
	return r.refs == 1
}

// leave drains a stream that no API has any more.
func (e *Engine) leave(r *running) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.refs--
	if r.refs != 0 || e.stopping {
		return
	}
	if e.running[r.key] == r {
		delete(e.running, r.key)
	}
	e.drain(context.Background(), r)
}

// drain stops a stream in the background. It needs mu.
func (e *Engine) drain(ctx context.Context, r *running) {
	ctx, cancel := context.WithTimeout(ctx, r.conf.DrainTimeout)
	e.left[r] = cancel
	e.draining.Go(func() {
		defer cancel()
		r.drain(ctx)
		e.mu.Lock()
		delete(e.left, r)
		e.mu.Unlock()
	})
}

// Shutdown stops all streams side by side. What is in them when ctx ends goes back to the
// sources.
func (e *Engine) Shutdown(ctx context.Context) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	e.stopping = true
	for key, r := range e.running {
		delete(e.running, key)
		e.drain(ctx, r)
	}
	e.mu.Unlock()
	defer context.AfterFunc(ctx, e.hurry)()
	e.draining.Wait()
	return e.connectors.Close(ctx)
}

// hurry ends the time of all streams that drain.
func (e *Engine) hurry() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cancel := range e.left {
		cancel()
	}
}
