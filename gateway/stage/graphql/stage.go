package graphql

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
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
	batchMax  int                      // 0: batches are refused
	documents documents
	socket    socket
	streams   streams
	headers   *vars.Headers // nil: headers stay as they are
}

// Schema returns the schema of the operations.
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

// Handle admits requests whose operations are valid and allowed for the key.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.Outgoing.Root {
		return pipeline.Next // a stored operation, which Judge has checked
	}
	w := begin(ex)
	w.head.Read(ex.Call)
	ex.MediaType = string(w.head.Media)
	if w.head.Upgrade {
		return s.handshake(ex)
	}
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

// options admits an OPTIONS request without its operation: some servers run what
// they find in the URL whatever the method.
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

// overrides are headers that make some upstreams treat OPTIONS as another method.
var overrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// refuse ends the request. It is counted under the rate first, so that the rate
// bounds refusals as well.
func (s *Stage) refuse(ex *pipeline.Exchange, r *pipeline.Rejection) pipeline.Verdict {
	if over := s.pay(ex); over != nil {
		r = over
	}
	return ex.Reject(r)
}

// pay counts the request under the rate and returns the refusal if the rate is
// exceeded.
func (s *Stage) pay(ex *pipeline.Exchange) *pipeline.Rejection {
	if ex.Rejection == nil && ex.ChargeRate() == pipeline.Next {
		return nil
	}
	return ex.Rejection
}

// post evaluates the operations in a body. GraphQL parameters in the URL are not
// forwarded, because the upstream might read them.
func (s *Stage) post(ex *pipeline.Exchange, w *work) pipeline.Verdict {
	if refused := w.head.Readable(ex.Call); refused != nil {
		return s.refuse(ex, refused)
	}
	body, refused := s.readBody(w, ex.Call)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	if w.head.Text || w.head.Untyped {
		w.asJSON(ex)
	}
	if w.head.Text {
		r, refused := w.decoder.Text(body)
		if refused != nil {
			return s.refuse(ex, refused)
		}
		w.dropParameters(ex)
		return s.only(ex, w, r)
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

// get evaluates the operation in a URL.
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

// only evaluates a request with one operation.
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
	if stored || w.head.Text {
		w.expand(ex, r)
	}
	w.stream(ex, found.facts.Kind == syntax.Subscription, r)
	return pipeline.Next
}

// judge evaluates all rules for one request. stored is true if its text is that of
// a document that it named.
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

// find returns the facts of a request's operation. An unknown operation counts
// under the rate before it is examined, and the effort of a batch is bounded.
func (s *Stage) find(ex *pipeline.Exchange, w *work, r *request.Request, doc *document, may *pipeline.OperationRules) (*known, *pipeline.Rejection) {
	if doc != nil {
		if found := doc.known[string(r.Operation)]; found != nil {
			return found, nil
		}
	}
	if found := s.lookup(w, r, may.Hidden); found != nil {
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
