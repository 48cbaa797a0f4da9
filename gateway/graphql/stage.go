package graphql

import (
	"github.com/sluicegate/sluice/gateway/graphql/request"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A Stage governs the operations of one API.
type Stage struct {
	*GraphQL
	*model
	api       string
	rules     rules.Options
	open      *pipeline.OperationRules // of calls without a key
	batchMax  int                      // 0: none are taken
	documents documents
	headers   *vars.Headers // nil: none are changed
}

// Schema returns the schema that operations are held against.
func (s *Stage) Schema() *schema.Schema { return s.schema }

const methods = "GET, HEAD, POST, OPTIONS"

var (
	wrongMethod   = allowing(methods, request.Refusal(pipeline.ReasonMethodNotAllowed, 405, "The method is not one of GraphQL; use POST, or GET for queries."))
	mutationByGet = allowing("POST", request.Refusal(pipeline.ReasonMethodNotAllowed, 405, "Mutations are sent with POST only."))
	notStreamed   = request.Refusal(pipeline.ReasonGraphQLMedia, 406, "Subscriptions are answered as text/event-stream only; ask for it with the Accept header.")
)

func allowing(methods string, r *pipeline.Rejection) *pipeline.Rejection {
	r.Allow = methods
	return r
}

// Handle lets a request pass that asks for nothing but what its key may have.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Outgoing.Root {
		return pipeline.Next // a stored operation, which Judge has seen
	}
	w := begin(ex)
	w.head.Read(ex.Call)
	ex.MediaType = string(w.head.Media)
	if refused := w.head.Answerable(); refused != nil {
		return s.refuse(ex, refused)
	}
	switch string(ex.Call.Method) {
	case "POST":
		return s.post(ex, w)
	case "GET", "HEAD":
		return s.get(ex, w)
	case "OPTIONS":
		return s.options(ex, w)
	}
	return s.refuse(ex, wrongMethod)
}

// options lets the question pass what is allowed. Nobody looks at an operation
// that comes with it, so that none goes up: some servers run what they find in
// the URL whatever the method.
func (s *Stage) options(ex *pipeline.Exchange, w *work) pipeline.Verdict {
	if ex.Call.HasBody() {
		return s.refuse(ex, request.BodyBesideURL)
	}
	w.dropParameters(ex)
	for _, name := range overrides {
		ex.Outgoing.AlsoDrop(name)
	}
	return pipeline.Next
}

// overrides are headers by which an upstream could take OPTIONS for another
// method.
var overrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// refuse ends the request, after it has been counted under the rate: refusals
// are answered as fast as the rate allows and no faster.
func (s *Stage) refuse(ex *pipeline.Exchange, r *pipeline.Rejection) pipeline.Verdict {
	if over := s.pay(ex); over != nil {
		r = over
	}
	return ex.Reject(r)
}

// pay counts the request under the rate, and returns the refusal if it is over.
func (s *Stage) pay(ex *pipeline.Exchange) *pipeline.Rejection {
	if ex.Rejection == nil && s.opts.Rate(ex) == pipeline.Next {
		return nil
	}
	return ex.Rejection
}

// post governs what is in a body. What the URL says beside it does not go up:
// the upstream might listen to that.
func (s *Stage) post(ex *pipeline.Exchange, w *work) pipeline.Verdict {
	if refused := w.head.Readable(); refused != nil {
		return s.refuse(ex, refused)
	}
	body, refused := s.readBody(w, ex.Call)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	list, batch, refused := w.decoder.Body(body, s.batchMax)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	w.dropParameters(ex)
	if batch {
		return s.batch(ex, w, list)
	}
	return s.only(ex, w, &list[0])
}

// get governs what is in a URL.
func (s *Stage) get(ex *pipeline.Exchange, w *work) pipeline.Verdict {
	if ex.Call.HasBody() {
		return s.refuse(ex, request.BodyBesideURL)
	}
	w.get = true
	r, refused := w.decoder.URL(ex.Call.Query)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	return s.only(ex, w, r)
}

// only governs a request for one operation.
func (s *Stage) only(ex *pipeline.Exchange, w *work, r *request.Request) pipeline.Verdict {
	may, refused := s.rulesFor(ex)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	if may.Hidden && w.decoder.AsksForSchema(ex.Path, ex.Call.Query) {
		return s.refuse(ex, s.restrictions.refusal(may, rules.Verdict{Kind: rules.Introspection}))
	}
	found, stored, refused := s.judge(ex, w, r, may)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	w.local = found.local
	if stored {
		w.expand(ex, r)
	}
	return pipeline.Next
}

// judge holds one request against everything that is to be held against. stored
// tells that its text is not its own, but that of the document it named.
func (s *Stage) judge(ex *pipeline.Exchange, w *work, r *request.Request, may *pipeline.OperationRules) (found *known, stored bool, refused *pipeline.Rejection) {
	doc, refused := s.resolve(ex, r, may)
	if refused != nil {
		return nil, false, refused
	}
	stored = doc != nil && len(r.Query) == 0
	if stored {
		r.Query = doc.text
	}
	if w.dry {
		w.judged = *r
	}
	if found, refused = s.find(ex, w, r, doc, may); refused != nil {
		return nil, stored, refused
	}
	if found.facts == nil {
		return nil, stored, found.refusal.of(w.head.Media)
	}
	w.note(ex, found.facts)
	switch {
	case w.get && found.facts.Kind == syntax.Mutation:
		return nil, stored, mutationByGet
	case found.facts.Kind == syntax.Subscription && !w.head.Stream:
		return nil, stored, notStreamed
	}
	if refused = s.hold(ex, w, found.facts, r.Variables, may); refused != nil {
		return nil, stored, refused
	}
	if doc == nil && r.Hash != nil && !w.dry {
		s.documents.register(r)
	}
	return found, stored, nil
}

// find finds out about the operation of a request. Before work is done for it,
// the request counts under the rate; and what is done for all operations of a
// batch has a bound.
func (s *Stage) find(ex *pipeline.Exchange, w *work, r *request.Request, doc *document, may *pipeline.OperationRules) (*known, *pipeline.Rejection) {
	if doc != nil {
		if found := doc.known[string(r.Operation)]; found != nil {
			return found, nil
		}
	}
	if found := s.look(w, r, may.Hidden); found != nil {
		return found, nil
	}
	if refused := s.pay(ex); refused != nil {
		return nil, refused
	}
	if w.effort > maxEffort {
		return nil, tooMuch
	}
	return s.examine(w, r, may.Hidden), nil
}
