package site

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

func streamRoutes() []route {
	return []route{
		{"GET", "/apis/{api}/routes/{route}", false, showStreamRoute},
		{"POST", "/apis/{api}/routes/{route}", true, tryStreamRoute},
	}
}

// A streamRoute is a route of an event stream as pages show it.
type streamRoute struct {
	catalogue.Route
	Slug   string // of the offer
	Listen string // path at which the gateway serves the route
	URL    string // the same with the gateway, and with an example for each parameter
}

// newStreamRoute returns a route of an offer that is served at an address.
func newStreamRoute(r catalogue.Route, o *catalogue.Offer, address string) *streamRoute {
	example := func(name string) string { return name }
	return &streamRoute{
		Route: r, Slug: o.ID, Listen: strings.TrimRight(o.ListenPath, "/") + r.Path, URL: strings.TrimRight(address, "/") + fillPath(r.Path, example),
	}
}

// fillPath returns the path of a route for a URL, with the values of its parameters.
func fillPath(path string, value func(name string) string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, isParameter := strings.CutPrefix(s, "{"); isParameter {
			s = value(strings.TrimSuffix(name, "}"))
		}
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// Uses says what callers can do with the route, in one sentence for each way.
func (r *streamRoute) Uses() (all []string) {
	several := len(r.Ways) > 1
	for _, way := range r.Ways {
		all = append(all, r.use(streams.Way(way), several))
	}
	return all
}

// use says what callers can do in one way; several: there are others.
func (r *streamRoute) use(way streams.Way, several bool) string {
	switch {
	case r.Takes && way == streams.WaySocket:
		use := "Send messages over WebSocket"
		if r.Gives {
			use = "Send and receive messages over WebSocket"
		}
		if r.Ack {
			use += "; each that you send is answered"
		}
		return use
	case r.Takes:
		return "Send a message: the body of the request"
	case way == streams.WaySocket:
		return "Receive messages over WebSocket"
	case way == streams.WayLines:
		return "Receive messages, one in each line"
	case way == streams.WayEvents && several:
		return "Receive messages as server-sent events, with Accept: text/event-stream"
	case way == streams.WayEvents:
		return "Receive messages as server-sent events"
	}
	return "Receive one message for each request (polling)"
}

// Content says which messages callers can send.
func (r *streamRoute) Content() string {
	switch n := r.MaxBytes; {
	case n%(1<<20) == 0:
		return fmt.Sprintf("any, up to %d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("any, up to %d KiB", n>>10)
	}
	return fmt.Sprintf("any, up to %s bytes", number(r.MaxBytes))
}

// samples returns an example call for each way of the route.
func (r *streamRoute) samples(o *catalogue.Offer) (all []sample) {
	for _, way := range r.Ways {
		all = append(all, r.sample(streams.Way(way), o)...)
	}
	return all
}

// exampleMessage is what samples send.
const exampleMessage = `{"text": "hello"}`

func (r *streamRoute) sample(way streams.Way, o *catalogue.Offer) []sample {
	q := newRequest(r.method(), r.URL, o)
	switch {
	case way == streams.WaySocket:
		return []sample{{"WebSocket", q.webSocket()}}
	case r.Takes:
		q.Body = exampleMessage
		return samplesOf(q)
	case way == streams.WaySingle:
		return []sample{{"curl, one message", q.curl()}}
	}
	q.Endless = true
	if way == streams.WayLines {
		return []sample{{"curl, line by line", q.curl()}}
	}
	q.More = [][2]string{{"Accept", "text/event-stream"}}
	all := []sample{{"curl, server-sent events", q.curl()}}
	if r.Resume {
		q.More = append(q.More, [2]string{"Last-Event-ID", "ID_OF_THE_LAST_EVENT"})
		all = append(all, sample{"curl, after a break", q.curl()})
	}
	return all
}

// method returns the method that examples use.
func (r *streamRoute) method() string {
	usual := fasthttp.MethodGet
	if r.Takes {
		usual = fasthttp.MethodPost
	}
	if slices.Contains(r.Methods, usual) {
		return usual
	}
	return r.Methods[0]
}

// routesPerPage is how many routes of streams a page shows.
const routesPerPage = 20

// streamsView is the part of an API's page that has its streams.
type streamsView struct {
	Routes []*streamRoute
	Why    string // there are no routes; "" if there are some
	Pager  *pager
}

// streams returns the page of an offer's routes that the address asks for.
func (v *visit) streams(o *catalogue.Offer, address string) (*streamsView, error) {
	n := v.pageNumber()
	found, err := v.routesOf(o, url.Values{"p": {strconv.FormatInt(n, 10)}, "page_size": {strconv.Itoa(routesPerPage)}})
	if f, ok := errors.AsType[*fault](err); ok && f.Status == fasthttp.StatusNotFound {
		return &streamsView{Why: f.Message, Pager: new(pager)}, nil
	}
	if err != nil {
		return nil, err
	}
	view := &streamsView{Pager: newPager(v, "/apis/"+escape(o.ID), n, found.Pages)}
	for _, r := range found.Data {
		view.Routes = append(view.Routes, newStreamRoute(r, o, address))
	}
	if found.Pages == 0 {
		view.Why = "The plan admits no route of the streams."
	}
	return view, nil
}

// samples returns an example call for each use of the routes that are shown.
func (s *streamsView) samples(o *catalogue.Offer) (all []sample) {
	for _, use := range []struct {
		name  string
		takes bool
		way   streams.Way
	}{
		{"Send a message", true, streams.WaySingle},
		{"Receive server-sent events", false, streams.WayEvents},
		{"Receive lines", false, streams.WayLines},
		{"Receive one message", false, streams.WaySingle},
		{"Send over WebSocket", true, streams.WaySocket},
		{"Receive over WebSocket", false, streams.WaySocket},
	} {
		at := slices.IndexFunc(s.Routes, func(r *streamRoute) bool { return r.Takes == use.takes && r.Has(use.way) })
		if at >= 0 {
			all = append(all, sample{use.name, s.Routes[at].sample(use.way, o)[0].Code})
		}
	}
	return all
}

// routesOf returns routes of an offer that match a filter.
func (v *visit) routesOf(o *catalogue.Offer, filter url.Values) (found catalogue.RouteList, err error) {
	err = v.get("/api/portal/public/catalogue/"+escape(o.ID)+"/routes?"+filter.Encode(), &found)
	return found, err
}

// routeFor returns the route of an offer that serves requests of an operation; nil: none.
func (v *visit) routeFor(o *catalogue.Offer, method, path string) (*streamRoute, error) {
	if !o.HasStreams {
		return nil, nil
	}
	found, err := v.routesOf(o, url.Values{"path": {path}})
	if err != nil {
		return nil, err
	}
	for _, r := range found.Data {
		if slices.Contains(r.Methods, method) {
			return newStreamRoute(r, o, v.addressOf(o)), nil
		}
	}
	return nil, nil
}

// routeView is the page of a route of a stream.
type routeView struct {
	Offer   *catalogue.Offer
	Route   *streamRoute
	Samples []sample
	Try     *tryView
}

// streamRoute returns the view of the route that the path names.
func (v *visit) streamRoute() (*routeView, error) {
	view := &routeView{Offer: new(catalogue.Offer)}
	path := "/api/portal/public/catalogue/" + escape(v.params["api"])
	if err := v.get(path, view.Offer); err != nil {
		return nil, err
	}
	var found catalogue.Route
	if err := v.get(path+"/routes/"+escape(v.params["route"]), &found); err != nil {
		return nil, err
	}
	view.Route = newStreamRoute(found, view.Offer, v.addressOf(view.Offer))
	view.Samples = view.Route.samples(view.Offer)
	var err error
	view.Try, err = v.tryRoute(view)
	return view, err
}

// tryRoute returns the form that sends a message to a route, or one that says why there is
// none.
func (v *visit) tryRoute(view *routeView) (*tryView, error) {
	t := &tryView{Note: notTried(view.Route)}
	if t.Note != "" {
		return t, nil
	}
	var fields []*field
	fillPath(view.Route.Path, func(name string) string {
		fields = append(fields, &field{Name: "path." + name, Label: name, Hint: "path", Required: true})
		return ""
	})
	t.Form, t.HasBody, t.Media, t.Body = newForm(fields...), true, "application/json", exampleMessage
	return t, v.callers(t, view.Offer)
}

// notTried says why a route cannot be tried with a form; "": it can.
func notTried(r *streamRoute) string {
	switch {
	case r == nil || r.Takes && r.Has(streams.WaySingle):
		return ""
	case r.Takes:
		return "Messages over WebSocket are not sent from here: use the line above in a terminal."
	}
	return "Messages are not received here, as they come at any time: use the line above in a terminal."
}

func showStreamRoute(v *visit) error {
	view, err := v.streamRoute()
	if err != nil {
		return err
	}
	return v.showStreamRoute(fasthttp.StatusOK, view)
}

func (v *visit) showStreamRoute(status int, view *routeView) error {
	return v.show(status, "route", view.Offer.Name+" "+view.Route.Path, view)
}

// tryStreamRoute sends a message to a route, and shows its page with the answer.
func tryStreamRoute(v *visit) error {
	view, err := v.streamRoute()
	if err != nil {
		return err
	}
	if view.Try.Note != "" {
		return &fault{Status: fasthttp.StatusNotFound, Message: view.Try.Note}
	}
	t := view.Try
	t.take(v)
	complete := true
	made := &triedCall{Key: t.Key, Method: view.Route.method(), Body: t.Body, Headers: map[string]string{}}
	made.Path = fillPath(view.Route.Path, func(name string) string {
		f := t.Form.Fields["path."+name]
		complete = t.Form.filled(f) && complete
		return f.Value
	})
	if !complete {
		return v.showStreamRoute(fasthttp.StatusBadRequest, view)
	}
	if made.Body != "" {
		made.Headers[fasthttp.HeaderContentType] = t.Media
	}
	status, err := v.send(t, view.Offer, made)
	if err != nil {
		return err
	}
	return v.showStreamRoute(status, view)
}
