// Package handling tells those of events that definitions and settings name.
package handling

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/handlers"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/event/webhook"
)

// Options says whom to tell.
type Options struct {
	API       func(id string) *definition.API // that is served, or nil
	Sender    *webhook.Sender
	Templates string          // folder that template_path is looked up in; "" for none
	All       []*webhook.Hook // told of events of the process and of keys, which belong to no API
	Trigger   *webhook.Hook   // told of TriggerExceeded; nil: nobody is
	Log       *slog.Logger
}

// Sink tells the handlers of an API of its events. It implements event.Sink.
type Sink struct {
	opts Options
	apis map[string]compiled // by id, of APIs that had events
}

// compiled is what one state of a definition says.
type compiled struct {
	raw  string // event_handlers, that it was made of
	told map[event.Name][]handler
}

// A handler is told of an event.
type handler struct {
	hook   *webhook.Hook // nil: the log is
	prefix string
	lines  *event.Budget // of the log
}

// New returns a sink.
func New(o Options) *Sink { return &Sink{opts: o, apis: make(map[string]compiled)} }

// ofProcess are the events that concern keys and the process, and no API.
func ofProcess(name event.Name) bool {
	switch name {
	case event.TokenCreated, event.TokenUpdated, event.TokenDeleted, event.CounterStoreDown, event.CounterStoreUp:
		return true
	}
	return false
}

// Handle tells whoever is to be told of e.
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
	if def == nil || len(def.EventHandlers) == 0 {
		delete(s.apis, id)
		return nil
	}
	known, there := s.apis[id]
	if !there || known.raw != string(def.EventHandlers) {
		known = compiled{string(def.EventHandlers), s.compile(id, def.EventHandlers)}
		s.apis[id] = known
	}
	return known.told
}

// compile makes handlers of what a definition says. One that cannot be made does
// not keep the others from it.
func (s *Sink) compile(id string, raw json.RawMessage) map[event.Name][]handler {
	told := make(map[event.Name][]handler)
	said, _ := handlers.Parse(raw) // it was checked before it was served
	for name, list := range said {
		for i := range list {
			h, err := s.make(&list[i])
			if err != nil {
				s.opts.Log.Error("an event handler is not as its definition says", "api", id, "event", name, "err", err)
			}
			told[event.Name(name)] = append(told[event.Name(name)], h)
		}
	}
	return told
}

// make makes a handler. Beside an error it is one with the usual message.
func (s *Sink) make(said *handlers.Handler) (handler, error) {
	if said.Name == handlers.ToLog {
		return handler{prefix: said.Meta.Prefix, lines: new(event.Budget)}, nil
	}
	m := &said.Meta
	hook := &webhook.Hook{
		Method: methodOf(m.Method), URL: m.Target, Header: m.Headers, Cooldown: time.Duration(m.Cooldown) * time.Second,
	}
	var err error
	hook.Template, err = Template(s.opts.Templates, m.TemplateFile, m.Template)
	return handler{hook: hook}, err
}

// methodOf returns the method that a definition means: one that it does not know
// is GET.
func methodOf(said string) string {
	switch said {
	case "POST", "PUT", "PATCH", "DELETE":
		return said
	}
	return "GET"
}

// maxTemplate is the longest template that is read, in bytes.
const maxTemplate = 64 << 10

// Template reads the template in a file of a folder, or the one that text is. It
// is nil when neither is given.
func Template(folder, file, text string) (*webhook.Template, error) {
	switch {
	case text != "":
		return webhook.ParseTemplate("template", text)
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
	return webhook.ParseTemplate(file, string(content))
}
