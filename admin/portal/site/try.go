package site

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/site/reference"
)

// tryView is the form for calling an operation, and what came of it.
type tryView struct {
	Note    string   // why there is no form; "": there is one
	Keys    []ownKey // of the visitor, that may call the API
	Key     string   // id of the one that calls
	Form    *form    // of the parameters
	HasBody bool
	Media   string // of the body
	Body    string
	Answer  *tried // nil: no call was made
}

// A tried is the answer to a call that the visitor made.
type tried struct {
	Sent    bool   `json:"sent"`
	Status  int    `json:"status"`
	Body    string `json:"body"`
	Bytes   []byte `json:"body_base64"`
	Cut     bool   `json:"cut"`
	Headers []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"headers"`
	RequestID   string  `json:"request_id"`
	TookMS      float64 `json:"took_ms"`
	Explanation struct {
		Steps   []triedStep `json:"steps"`
		Outcome struct {
			Allowed bool   `json:"allowed"`
			Reason  string `json:"reason"`
		} `json:"outcome"`
	} `json:"explanation"`
}

type triedStep struct {
	Stage  string `json:"stage"`
	Result string `json:"result"`
	Said   string `json:"said"`
	Facts  []struct {
		Rule  string `json:"rule"`
		Value string `json:"value"`
		Seen  string `json:"seen"`
		From  string `json:"from"`
	} `json:"facts"`
}

// StatusText returns the name of the status.
func (t *tried) StatusText() string { return fasthttp.StatusMessage(t.Status) }

// Took says how long the call took.
func (t *tried) Took() string {
	if t.TookMS < 1 {
		return "under 1 ms"
	}
	return fmt.Sprintf("%.0f ms", t.TookMS)
}

// maxShown bounds the part of an answer that a page shows, in bytes.
const maxShown = 64 << 10

// Text returns the body for people.
func (t *tried) Text() string {
	text := t.Body
	if len(t.Bytes) > 0 {
		return fmt.Sprintf("%d bytes that are no text", len(t.Bytes))
	}
	var b bytes.Buffer
	if len(text) <= maxShown && json.Indent(&b, []byte(text), "", "  ") == nil {
		text = b.String()
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "")
	}
	return text
}

// Short reports whether only the beginning of the body is shown.
func (t *tried) Short() bool { return t.Cut || len(t.Body) > maxShown }

// Why says why the gateway refused the call; "" if it did not.
func (t *tried) Why() string {
	if t.Explanation.Outcome.Allowed || t.Explanation.Outcome.Reason == "" {
		return ""
	}
	return reasonText(t.Explanation.Outcome.Reason)
}

// Steps returns the stages that the call passed, the refusal last.
func (t *tried) Steps() []triedStep { return t.Explanation.Steps }

// Refused returns the stage that refused the call, or nil.
func (t *tried) Refused() *triedStep {
	if i := slices.IndexFunc(t.Explanation.Steps, func(s triedStep) bool { return s.Result == "fail" }); i >= 0 {
		return &t.Explanation.Steps[i]
	}
	return nil
}

// try returns the form for calling the operation of a page, or nil where there is none.
func (v *visit) try(d *docsView) (*tryView, error) {
	e := d.Entry
	if e.Query != "" || e.Shape != nil || e.Method == "" || strings.ToUpper(e.Method) != e.Method {
		return nil, nil
	}
	if _, below := d.belowListenPath(); !below || d.Offer.APIID == "" {
		return nil, nil
	}
	if note := notTried(d.Route); note != "" {
		return &tryView{Note: note}, nil
	}
	t := &tryView{Form: newForm(parameterFields(e)...)}
	if e.Body != nil {
		t.HasBody, t.Media = true, "application/json"
		for i, f := range e.Body.Formats {
			if json := strings.Contains(f.Media, "json"); json || i == 0 {
				t.Media, t.Body = f.Media, f.Example
				if json {
					break
				}
			}
		}
	}
	return t, v.callers(t, d.Offer)
}

// callers has a form offer the keys of the visitor that may call the API.
func (v *visit) callers(t *tryView, o *catalogue.Offer) (err error) {
	if o.IsKeyless {
		return nil
	}
	if t.Keys, err = v.keysFor(o.APIID); len(t.Keys) > 0 {
		t.Key = t.Keys[0].ID
	}
	return err
}

// take fills in what the visitor sent.
func (t *tryView) take(v *visit) {
	t.Form.take(v)
	t.Key = v.value("key")
	if t.HasBody {
		t.Body = v.value("body")
	}
}

// parameterFields returns a field for each parameter that a call can set.
func parameterFields(e *reference.Entry) (fields []*field) {
	for _, p := range e.Parameters {
		name := parameterName(p)
		if name == "" || slices.ContainsFunc(fields, func(f *field) bool { return f.Name == name }) {
			continue
		}
		hint := p.In
		if t := cmp.Or(p.Type.Text, p.Type.Name); t != "" {
			hint += ", " + t
		}
		fields = append(fields, &field{Name: name, Label: p.Name, Value: p.Example, Hint: hint, Required: p.Required || p.In == "path"})
	}
	return fields
}

// parameterName returns the name of a parameter's field; "" for one that a call cannot set.
func parameterName(p *reference.Node) string {
	switch p.In {
	case "path", "query":
	case "header":
		if own := []string{"Accept", "Content-Type", fasthttp.HeaderAuthorization}; slices.ContainsFunc(own, func(name string) bool { return strings.EqualFold(name, p.Name) }) {
			return ""
		}
	default:
		return ""
	}
	return p.In + "." + p.Name
}

// belowListenPath returns the path that operations are below as seen from the listen path,
// and reports whether it is below that.
func (d *docsView) belowListenPath() (string, bool) {
	server := d.Ref.Server
	if u, err := url.Parse(server); err == nil {
		server = u.EscapedPath()
	}
	listen := strings.TrimRight(d.Offer.ListenPath, "/")
	full := strings.TrimRight(server, "/") + d.Entry.Name
	rest, found := strings.CutPrefix(full, listen)
	return rest, found && strings.HasPrefix(rest, "/")
}

// triedCall is a call as the REST takes it.
type triedCall struct {
	Key     string            `json:"key_id,omitempty"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Stream  bool              `json:"stream,omitempty"`
}

// call returns the call that the visitor has filled in, or marks what is missing.
func (t *tryView) call(d *docsView) (*triedCall, bool) {
	path, _ := d.belowListenPath()
	c := &triedCall{Key: t.Key, Method: d.Entry.Method, Headers: map[string]string{}}
	query, complete := url.Values{}, true
	for _, p := range d.Entry.Parameters {
		f := t.Form.Fields[parameterName(p)]
		switch {
		case f == nil:
			continue
		case f.Value == "":
			complete = t.Form.filled(f) && complete
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(f.Value))
		case p.In == "query":
			query.Set(p.Name, f.Value)
		default:
			c.Headers[p.Name] = f.Value
		}
	}
	if !complete {
		return nil, false
	}
	if c.Path = path; len(query) > 0 {
		c.Path += "?" + query.Encode()
	}
	if t.Body != "" {
		c.Body, c.Headers[fasthttp.HeaderContentType] = t.Body, t.Media
	}
	return c, true
}

// tryOperation makes a call of an operation, and shows its page with the answer.
func tryOperation(v *visit) error {
	v.params = map[string]string{"api": v.value("api"), "entry": v.value("entry")}
	view, err := v.operation()
	if err != nil {
		return err
	}
	if view.Try == nil || view.Try.Note != "" {
		return &fault{Status: fasthttp.StatusNotFound, Message: "This operation cannot be tried here."}
	}
	view.Try.take(v)
	made, complete := view.Try.call(view)
	if !complete {
		return v.showOperation(fasthttp.StatusBadRequest, view)
	}
	status, err := v.send(view.Try, view.Offer, made)
	if err != nil {
		return err
	}
	return v.showOperation(status, view)
}

// send makes a call. The form has the answer then, or says why there is none.
func (v *visit) send(t *tryView, o *catalogue.Offer, made *triedCall) (status int, err error) {
	answer := new(tried)
	if _, err := v.call(call{method: fasthttp.MethodPost, path: tryPath(o), body: made, into: answer}); err != nil {
		return t.refused(err)
	}
	t.Answer = answer
	return fasthttp.StatusOK, nil
}

// refused shows beside the form why there is no answer.
func (t *tryView) refused(err error) (status int, rest error) {
	if f, ok := errors.AsType[*fault](err); ok && f.Status == fasthttp.StatusGatewayTimeout {
		t.Form.Message = f.Message
		return f.Status, nil
	}
	return t.Form.refused(err)
}

func tryPath(o *catalogue.Offer) string {
	return "/api/portal/me/apis/" + escape(o.ID) + "/try"
}

// playView is the page of the playground.
type playView struct {
	Offer   *catalogue.Offer
	Keys    []ownKey // of the visitor, that may call the API
	Query   string   // the first operation
	Samples []sample
}

// playOffer returns the offer that the path names, which has a playground.
func (v *visit) playOffer() (*catalogue.Offer, error) {
	offer := new(catalogue.Offer)
	if err := v.get("/api/portal/public/catalogue/"+escape(v.params["api"]), offer); err != nil {
		return nil, err
	}
	if !offer.IsGraphQL || v.site.deps.Playground == nil {
		return nil, &fault{Status: fasthttp.StatusNotFound, Message: "There is no playground for this API."}
	}
	return offer, nil
}

func showPlay(v *visit) error {
	offer, err := v.playOffer()
	if err != nil {
		return err
	}
	view := &playView{Offer: offer}
	if !offer.IsKeyless {
		if view.Keys, err = v.keysFor(offer.APIID); err != nil {
			return err
		}
	}
	if entry := v.query("operation"); entry != "" {
		v.params["entry"] = entry
		if d, err := v.operation(); err == nil {
			view.Query = d.Entry.Query
		}
	}
	body := `{"query": ` + jsonText(cmp.Or(view.Query, "query { __typename }")) + "}"
	made := newRequest("POST", v.addressOf(offer), offer)
	made.Body = body
	view.Samples = samplesOf(made)[:1]
	return v.show(fasthttp.StatusOK, "play", offer.Name+" playground", view)
}

// play makes a call of the playground. Its script reads the answer.
func play(v *visit) error {
	offer, err := v.playOffer()
	if err != nil {
		return v.answerJSON(nil, err)
	}
	var headers map[string]string
	if text := v.value("headers"); text != "" && json.Unmarshal([]byte(text), &headers) != nil {
		return v.answerJSON(nil, &fault{Status: fasthttp.StatusBadRequest, Message: "headers: must be a JSON object of texts"})
	}
	operation := map[string]any{"query": v.value("query")}
	if text := v.value("variables"); text != "" {
		if !json.Valid([]byte(text)) {
			return v.answerJSON(nil, &fault{Status: fasthttp.StatusBadRequest, Message: "variables: must be JSON"})
		}
		operation["variables"] = json.RawMessage(text)
	}
	if name := v.value("operation"); name != "" {
		operation["operationName"] = name
	}
	body, err := json.Marshal(operation)
	if err != nil {
		return err
	}
	var answer []byte
	var streamed bool
	made := triedCall{Key: v.value("key"), Method: fasthttp.MethodPost, Path: "/", Headers: headers, Body: string(body), Stream: v.value("stream") != ""}
	_, err = v.call(call{method: fasthttp.MethodPost, path: tryPath(offer), body: made, raw: &answer, streamed: &streamed})
	if streamed {
		return nil
	}
	return v.answerJSON(answer, err)
}

// playSchema answers the script of the playground with what a key may use.
func playSchema(v *visit) error {
	if _, err := v.playOffer(); err != nil {
		return v.answerJSON(nil, err)
	}
	path := "/api/portal/me/apis/" + escape(v.params["api"]) + "/schema"
	if key := v.query("key"); key != "" {
		path += "?" + url.Values{"key_id": {key}}.Encode()
	}
	answer, err := v.raw(path)
	return v.answerJSON(answer, err)
}

// answerJSON answers a script of the site with JSON of the REST, or with its refusal.
func (v *visit) answerJSON(text []byte, err error) error {
	status := fasthttp.StatusOK
	if err != nil {
		f, expected := errors.AsType[*fault](err)
		if !expected {
			return err
		}
		status = f.Status
		message := f.Message
		if len(f.Problems) > 0 {
			message = strings.Join(f.Problems, "; ")
		}
		if text, err = json.Marshal(map[string]string{"error": message}); err != nil {
			return err
		}
	}
	h := &v.http.Response.Header
	h.SetContentType("application/json; charset=utf-8")
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	v.http.SetStatusCode(status)
	v.http.SetBody(text)
	return nil
}
