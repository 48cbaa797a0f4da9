package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// A Route is a path at which a stream serves developers, without brokers, processors and
// addresses behind it.
type Route struct {
	// Name of the stream and number of the route, which name it in calls.
	ID string `json:"id"`
	// Name of the stream.
	Stream string `json:"stream"`
	// Methods that the route is for.
	// Example: ["GET"]
	Methods []string `json:"methods"`
	// Path below the listen path of the API; {name} stands for one segment.
	Path string `json:"path"`
	// Whether callers send messages.
	Takes bool `json:"takes"`
	// Whether callers receive messages.
	Gives bool `json:"gives"`
	// Ways of the messages: a request for each, an answer of server-sent events, an answer with a
	// message in each line, or WebSocket.
	Ways []string `json:"ways" enum:"single,events,lines,websocket"`
	// Whether callers that send Last-Event-ID receive what came after that event.
	Resume bool `json:"resume"`
	// Whether each message that a caller sends over WebSocket is answered.
	Ack bool `json:"ack"`
	// Bytes that a message of a caller may have at most.
	MaxBytes int `json:"max_message_bytes"`
}

// Has reports whether callers can use the route in a way.
func (r *Route) Has(way streams.Way) bool { return slices.Contains(r.Ways, string(way)) }

// RouteList is one page of routes.
type RouteList struct {
	// Routes of the page.
	Data []Route `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

func (s *Service) publicRoutesOfStreams(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	all, err := s.routesOfStreams(ctx, c)
	if err != nil {
		return nil, err
	}
	if path := c.Query("path"); path != "" {
		all = slices.DeleteFunc(all, func(r Route) bool { return anonymous(r.Path) != anonymous(path) })
	}
	list := RouteList{Data: []Route{}, Pages: rest.Pages(int64(len(all)), page)}
	if from := min(int(page.Offset()), len(all)); from < len(all) {
		list.Data = all[from:min(from+int(page.Limit()), len(all))]
	}
	return list, nil
}

// anonymous returns a path in which parameters have no names.
func anonymous(path string) string { return parameter.ReplaceAllLiteralString(path, "{}") }

func (s *Service) publicRouteOfStreams(ctx context.Context, c *rest.Call) (any, error) {
	all, err := s.routesOfStreams(ctx, c)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(r Route) bool { return r.ID == c.Param("route") })
	if at < 0 {
		return nil, rest.NotFound(noObject)
	}
	return all[at], nil
}

// routesOfStreams returns the routes of the streams of an offer's API, without those that the
// plan of the offer does not admit.
func (s *Service) routesOfStreams(ctx context.Context, c *rest.Call) ([]Route, error) {
	org, _, err := s.admit(ctx, c)
	if err != nil {
		return nil, err
	}
	offer, err := s.store.Offer(ctx, org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	all, err := s.streamsOf(ctx, org, offer.APIID)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	plan, err := s.plan(ctx, org, &offer)
	if err != nil {
		return nil, err
	}
	var admitted allowedURLs
	if plan != nil {
		if admitted, err = compileAllowed(plan.AllowedURLs); err != nil {
			return nil, err
		}
	}
	var routes []Route
	for i := range all {
		routes = append(routes, routesOf(&all[i], admitted)...)
	}
	return routes, nil
}

// streamsOf returns the streams of an API: none if there is no such API, or if it is stored
// with streams that no gateway runs because they are not valid.
func (s *Service) streamsOf(ctx context.Context, org, id string) ([]streams.Stream, error) {
	if id == "" {
		return nil, nil
	}
	row, err := s.store.APIByID(ctx, org, id)
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	api := new(definition.API)
	if err := json.Unmarshal(row.Definition, api); err != nil {
		return nil, fmt.Errorf("reading the definition of API %s: %w", id, err)
	}
	all, err := api.Streams(streams.Options{SkipScripts: true})
	if err != nil {
		return nil, nil
	}
	return all, nil
}

// routesOf returns what an API serves for a stream, as far as it is admitted.
func routesOf(s *streams.Stream, admitted allowedURLs) (shown []Route) {
	for i, r := range s.Routes() {
		verbs := slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool { return !admitted.allow(verb, r.Path) })
		handshake := admitted.allow("GET", r.Path)
		var ways []string
		for _, way := range r.Ways {
			if way == streams.WaySocket && handshake || way != streams.WaySocket && len(verbs) > 0 {
				ways = append(ways, string(way))
			}
		}
		if len(ways) == 0 {
			continue
		}
		if len(verbs) == 0 {
			verbs = []string{"GET"}
		}
		shown = append(shown, Route{
			ID: s.Name + "." + strconv.Itoa(i+1), Stream: s.Name, Methods: verbs, Path: r.Path, Takes: r.Takes, Gives: r.Gives, Ways: ways,
			Resume: r.Resume, Ack: r.Ack, MaxBytes: s.MaxMessageBytes,
		})
	}
	return shown
}
