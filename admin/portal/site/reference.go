package site

import (
	"errors"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/site/reference"
)

func referenceRoutes() []route {
	return []route{
		{"GET", "/apis/{api}/docs", false, showDocs},
		{"GET", "/apis/{api}/docs/{entry}", false, showEntry},
		{"POST", "/try", true, tryOperation},
		{"GET", "/apis/{api}/play", true, showPlay},
		{"POST", "/apis/{api}/play", true, play},
		{"GET", "/apis/{api}/play/schema", true, playSchema},
	}
}

// docsView is the reference of an API, or one operation or type of it.
type docsView struct {
	Offer   *catalogue.Offer
	Doc     *catalogue.Documentation
	Ref     *reference.Reference // nil: the document is Markdown
	Entry   *reference.Entry     // nil: the beginning of the reference
	Route   *streamRoute         // that serves the operation; nil: the upstream does
	Address string               // of the API
	Samples []sample
	Try     *tryView // nil: the entry cannot be tried with a form
	Play    bool     // the entry can be tried in the playground
}

// docs returns the reference that the path names, cut by the REST to what the plan of the
// offer admits. Beside an error it has the offer, if there is one.
func (v *visit) docs() (*docsView, error) {
	view := &docsView{Offer: new(catalogue.Offer), Doc: new(catalogue.Documentation)}
	path := "/api/portal/public/catalogue/" + escape(v.params["api"])
	if err := v.get(path, view.Offer); err != nil {
		return view, err
	}
	if err := v.get(path+"/documentation", view.Doc); err != nil {
		if f, ok := errors.AsType[*fault](err); ok && f.Status == fasthttp.StatusNotFound {
			f.Message = "There is no documentation of this API."
		}
		return view, err
	}
	view.Address = v.addressOf(view.Offer)
	var err error
	switch {
	case view.Doc.OpenAPI != nil:
		view.Ref, err = reference.OpenAPI(view.Doc.OpenAPI)
	case view.Doc.Schema != "":
		view.Ref, err = reference.GraphQL(view.Doc.Schema)
	}
	return view, err
}

func showDocs(v *visit) error {
	view, err := v.docs()
	if err != nil && view.Offer.HasStreams && !view.Offer.Documented {
		return v.redirect("/apis/" + escape(view.Offer.ID) + "#streams")
	}
	if err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "docs", view.Offer.Name+" reference", view)
}

func showEntry(v *visit) error {
	view, err := v.operation()
	if err != nil {
		return err
	}
	return v.showOperation(fasthttp.StatusOK, view)
}

// operation returns the entry of a reference that the path names.
func (v *visit) operation() (*docsView, error) {
	view, err := v.docs()
	if err != nil {
		return nil, err
	}
	if view.Ref != nil {
		view.Entry = view.Ref.Entry(v.params["entry"])
	}
	if view.Entry == nil {
		return nil, &fault{Status: fasthttp.StatusNotFound, Message: "The documentation of this API has no such page."}
	}
	if path, below := view.belowListenPath(); below && view.Entry.Method != "" {
		if view.Route, err = v.routeFor(view.Offer, view.Entry.Method, path); err != nil {
			return nil, err
		}
	}
	if view.Samples = view.samples(); view.Route != nil {
		view.Samples = view.Route.samples(view.Offer)
	}
	view.Play = view.Entry.Query != "" && view.Offer.IsGraphQL && v.site.deps.Playground != nil
	view.Try, err = v.try(view)
	return view, err
}

// showOperation answers with the page of an entry.
func (v *visit) showOperation(status int, view *docsView) error {
	title := view.Entry.Name
	if view.Entry.Title != "" {
		title = view.Entry.Title
	}
	return v.show(status, "docs", title, view)
}

// samples returns the call of an operation in several languages.
func (d *docsView) samples() []sample {
	e, r := d.Entry, newRequest("POST", d.Address, d.Offer)
	switch {
	case e.Query != "":
		r.Body = `{"query": ` + jsonText(e.Query) + variables(e) + `}`
		return append([]sample{{"GraphQL", e.Query}}, samplesOf(r)...)
	case e.Shape != nil || e.Method == "" || strings.ToUpper(e.Method) != e.Method:
		return nil
	}
	r.Method, r.URL = e.Method, d.operationURL(e)
	if e.Body != nil {
		for _, f := range e.Body.Formats {
			if strings.Contains(f.Media, "json") {
				r.Body = f.Example
				break
			}
		}
	}
	return samplesOf(r)
}

// variables returns the member of a body with a value for each variable of an operation.
func variables(e *reference.Entry) string {
	var parts []string
	for _, p := range e.Parameters {
		if p.Required {
			parts = append(parts, jsonText(p.Name)+": "+variableOf(p.Type.Name))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return `, "variables": {` + strings.Join(parts, ", ") + "}"
}

func variableOf(name string) string {
	switch name {
	case "Int", "Float":
		return "1"
	case "Boolean":
		return "true"
	case "String", "ID":
		return `"…"`
	}
	return "{}"
}

// operationURL returns the address of an operation with examples in place of parameters.
func (d *docsView) operationURL(e *reference.Entry) string {
	base := d.Address
	if u, err := url.Parse(d.Address); err == nil {
		switch server := strings.TrimRight(d.Ref.Server, "/"); {
		case strings.HasPrefix(server, "//"):
			base = u.Scheme + ":" + server
		case strings.HasPrefix(server, "/") || server == "":
			base = u.Scheme + "://" + u.Host + server
		}
	}
	path := e.Name
	query := url.Values{}
	for _, p := range e.Parameters {
		value := p.Example
		switch {
		case p.In == "path" && value != "":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && (p.Required || value != ""):
			if value == "" {
				value = "…"
			}
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return base + path
}
