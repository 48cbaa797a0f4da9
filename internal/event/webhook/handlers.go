package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// SinkOptions are the options of NewSink.
type SinkOptions struct {
	API       func(id string) *definition.API // that is served, or nil
	Sender    *Sender
	Templates string  // folder that template_path is looked up in; "" for none
	All       []*Hook // for events of the process and of keys, which belong to no API
	Trigger   *Hook   // for TriggerExceeded; may be nil
	Log       *slog.Logger
}

// Sink carries out the event handlers of APIs and settings. It implements event.Sink.
type Sink struct {
	opts SinkOptions
	apis map[string]compiled // by id, of APIs that had events
}

// compiled are the handlers of one state of a definition.
type compiled struct {
	from    *definition.EventHandlers // that it was made of
	byEvent map[event.Name][]handler
}

// A handler calls a webhook or writes to the log.
type handler struct {
	hook   *Hook // nil: the log
	prefix string
	lines  *event.Budget // of the log
}

// NewSink returns a sink.
func NewSink(o SinkOptions) *Sink { return &Sink{opts: o, apis: make(map[string]compiled)} }

// ofProcess reports whether an event concerns keys or the process, and no API.
func ofProcess(name event.Name) bool {
	switch name {
	case event.TokenCreated, event.TokenUpdated, event.TokenDeleted, event.CounterStoreDown, event.CounterStoreUp:
		return true
	}
	return false
}

// Handle carries out the handlers of e.
func (s *Sink) Handle(e event.Event) {
	if e.Name == event.TriggerExceeded && s.opts.Trigger != nil {
		s.opts.Sender.Send(s.opts.Trigger, e)
	}
	if ofProcess(e.Name) {
		for _, hook := range s.opts.All {
			s.opts.Sender.Send(hook, e)
		}
	}
	for _, h := range s.handlersOf(e.API)[e.Name] {
		if h.hook != nil {
			s.opts.Sender.Send(h.hook, e)
			continue
		}
		s.log(&h, &e)
	}
}

// log writes an event as its handler says, a bounded number in a second: clients
// that are refused must not fill a disk.
func (s *Sink) log(h *handler, e *event.Event) {
	omitted, ok := h.lines.Spend(e)
	if !ok {
		return
	}
	attrs := []slog.Attr{
		slog.String("api", e.API), slog.String("key", e.Key), slog.String("detail", e.Detail), slog.String("path", e.Path),
	}
	if omitted > 0 {
		attrs = append(attrs, slog.Int("omitted", omitted))
	}
	s.opts.Log.LogAttrs(context.Background(), slog.LevelInfo, h.prefix+string(e.Name), attrs...)
}

// handlersOf returns the handlers of an API as it is served now.
func (s *Sink) handlersOf(id string) map[event.Name][]handler {
	if id == "" {
		return nil
	}
	def := s.opts.API(id)
	if def == nil || def.EventHandlers == nil {
		delete(s.apis, id)
		return nil
	}
	def = def.InForce()
	known, there := s.apis[id]
	if there && known.from == def.EventHandlers {
		return known.byEvent
	}
	if there && reflect.DeepEqual(known.from, def.EventHandlers) { // of another state of the definition
		known.from = def.EventHandlers
	} else {
		known = compiled{def.EventHandlers, s.compile(id, def.EventHandlers)}
	}
	s.apis[id] = known
	return known.byEvent
}

// compile returns the handlers of a definition. A handler that cannot be made does not
// affect the others.
func (s *Sink) compile(id string, handlers *definition.EventHandlers) map[event.Name][]handler {
	byEvent := make(map[event.Name][]handler)
	for name, list := range handlers.Events {
		for i := range list {
			if list[i].Meta.Disabled {
				continue
			}
			if list[i].Name == definition.WebhookHandler && list[i].Meta.Target == "" {
				s.opts.Log.Error("an event handler has no address to call: its stored webhook is not known", "api", id, "event", name, "webhook", list[i].Meta.ID)
				continue
			}
			h, err := s.make(&list[i])
			if err != nil {
				s.opts.Log.Error("an event handler is not as its definition says", "api", id, "event", name, "err", err)
			}
			byEvent[event.Name(name)] = append(byEvent[event.Name(name)], h)
		}
	}
	return byEvent
}

// make returns a handler. With an error it is one with the default message.
func (s *Sink) make(conf *definition.EventHandler) (handler, error) {
	if conf.Name == definition.LogHandler {
		return handler{prefix: conf.Meta.Prefix, lines: new(event.Budget)}, nil
	}
	m := &conf.Meta
	hook := &Hook{
		Method: methodOf(m.Method), URL: m.Target, Header: m.Headers, Cooldown: time.Duration(m.Cooldown) * time.Second,
	}
	var err error
	hook.Template, err = LoadTemplate(s.opts.Templates, m.TemplateFile, m.Template)
	return handler{hook: hook}, err
}

// methodOf returns the method of a definition; GET for an unknown one.
func methodOf(conf string) string {
	switch conf {
	case "POST", "PUT", "PATCH", "DELETE":
		return conf
	}
	return "GET"
}

// maxTemplate is the longest template that is read, in bytes.
const maxTemplate = 64 << 10

// LoadTemplate reads the template in a file of a folder, or parses text. It returns
// nil if both are "".
func LoadTemplate(folder, file, text string) (*Template, error) {
	switch {
	case text != "":
		return ParseTemplate("template", text)
	case file == "":
		return nil, nil
	case folder == "":
		return nil, fmt.Errorf("template_path %q: no folder of templates is set (events.templates)", file)
	}
	root, err := os.OpenRoot(folder) // which nothing in it leads out of
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	defer func() { _ = root.Close() }()
	content, err := root.ReadFile(filepath.Base(file))
	if err != nil {
		return nil, fmt.Errorf("reading a template: %w", err)
	}
	if len(content) > maxTemplate {
		return nil, fmt.Errorf("reading template %s: it is longer than 64 KiB", file)
	}
	return ParseTemplate(file, string(content))
}
