package graphql

import (
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// known is the result of examining one operation of a text: its facts, or its
// refusal for every key. It is immutable.
type known struct {
	facts *validate.Facts
	local []byte // the response if the upstream is not needed, else nil

	refusal refusal
}

// refusal is a refusal in both media types.
type refusal struct{ strict, plain *pipeline.Rejection }

func (r *refusal) of(media request.Media) *pipeline.Rejection {
	if media.Strict() {
		return r.strict
	}
	return r.plain
}

// invalid returns the refusal of an operation that violates the GraphQL specification.
func (m *model) invalid(reason pipeline.Reason, errs ...*syntax.Error) refusal {
	body, message := request.Body(errs...), errs[0].Message
	r := pipeline.NewGraphQLRejection(reason, 400, message, body)
	if !m.lenient {
		return refusal{r, r}
	}
	return refusal{r, pipeline.NewGraphQLRejection(reason, 200, message, body)}
}

// A worker examines texts. It reuses its allocations.
type worker struct {
	doc       syntax.Document
	validator validate.Validator
}

var workers = sync.Pool{New: func() any { return new(worker) }}

// maxWorn is the largest document, in tokens, whose worker is reused: buffers of
// larger ones would stay allocated.
const maxWorn = 4000

// lookup returns the cached result for an operation, nil if there is none.
func (s *Stage) lookup(w *work, r *request.Request, hidden bool) *known {
	valid, refused := cache.TextKey{Owner: s.id, Name: r.Operation, Text: r.Query}, s.id
	if hidden {
		refused = s.hiddenID()
	}
	if w.dry {
		if found := s.valid.Peek(valid); found != nil {
			return found
		}
		return s.refused.Peek(cache.TextKey{Owner: refused, Name: r.Operation, Text: r.Query})
	}
	if found := s.valid.Get(valid); found != nil {
		return found
	}
	return s.refused.Get(cache.TextKey{Owner: refused, Name: r.Operation, Text: r.Query})
}

// maxEffort bounds the effort of examining the operations of one request but the
// last, in units of 25 ns: about 12 ms.
const maxEffort = 500_000

// tooMuch is not cached: if the client repeats the request, the operations that
// were examined are known.
var tooMuch = request.Refusal(pipeline.ReasonGraphQLTooLarge, 400, "The batch is too complex: its operations take too much work to check. Send fewer of them together.")

// examine examines the operation of a request and caches the result, except in a
// dry run.
func (s *Stage) examine(of *work, r *request.Request, hidden bool) *known {
	w := workers.Get().(*worker)
	before := w.validator.Effort()
	found := s.inspect(w, r.Query, r.Operation, hidden)
	of.effort += w.validator.Effort() - before
	if w.doc.Tokens <= maxWorn {
		w.doc.Source = nil
		workers.Put(w)
	}
	if of.dry {
		return found
	}
	s.misses.Add(1)
	k := cache.TextKey{Owner: s.id, Name: r.Operation, Text: r.Query}
	if found.facts != nil {
		s.valid.Add(k, found, sizeOf(found.facts)+len(found.local))
		return found
	}
	if hidden {
		k.Owner = s.hiddenID()
	}
	s.refused.Add(k, found, sizeOfRefusal(&found.refusal))
	return found
}

// inspect checks a text against grammar, ceilings and schema. If hidden is set,
// errors reveal no names of the schema.
func (s *Stage) inspect(w *worker, text, name []byte, hidden bool) *known {
	if err := syntax.Parse(&w.doc, text, s.opts.Ceilings.limits()); err != nil {
		return &known{refusal: s.unparsed(err)}
	}
	if at := doubtful(text); at >= 0 {
		return &known{refusal: s.invalid(pipeline.ReasonGraphQLInvalid, doubt(&w.doc, at))}
	}
	o := s.checking
	o.Hide = hidden
	if errs := w.validator.Check(s.schema, &w.doc, o); len(errs) > 0 {
		reason := pipeline.ReasonGraphQLInvalid
		if slices.ContainsFunc(errs, validate.TooComplex) {
			reason = pipeline.ReasonGraphQLTooLarge
		}
		return &known{refusal: s.invalid(reason, errs...)}
	}
	operation, unclear := validate.Select(&w.doc, string(name))
	if unclear != nil {
		return &known{refusal: s.invalid(pipeline.ReasonGraphQLInvalid, unclear)}
	}
	facts, err := w.validator.Facts(s.schema, &w.doc, operation, o)
	if err != nil {
		return &known{refusal: s.unparsed(err)}
	}
	if most := s.opts.Ceilings.RootFields; most > 0 && facts.RootFields > most {
		return &known{refusal: s.invalid(pipeline.ReasonGraphQLTooLarge, &syntax.Error{
			Message: "The operation has more than " + strconv.Itoa(most) + " root fields, which is the most that is accepted.",
		})}
	}
	found := &known{facts: facts}
	if facts.OnlyTypename != "" {
		found.local = []byte(`{"data":` + facts.OnlyTypename + `}`)
	}
	return found
}

// unparsed returns the refusal of a text that cannot be parsed or is too large.
func (m *model) unparsed(err error) refusal {
	if tooLarge, ok := errors.AsType[*syntax.LimitError](err); ok {
		return m.invalid(pipeline.ReasonGraphQLTooLarge, &syntax.Error{
			Message: "The document exceeds the limit on " + tooLarge.What + ": at most " + strconv.Itoa(tooLarge.Max) + " are accepted.",
		})
	}
	if fault, ok := errors.AsType[*syntax.Error](err); ok {
		return m.invalid(pipeline.ReasonGraphQLInvalid, fault)
	}
	return m.invalid(pipeline.ReasonGraphQLInvalid, &syntax.Error{Message: err.Error()})
}

// sizeOf estimates the memory of facts and of their cache entry, in bytes.
func sizeOf(f *validate.Facts) int { return 100 + f.Size() }

// sizeOfRefusal estimates the memory of a refusal, in bytes.
func sizeOfRefusal(r *refusal) int {
	size := 300 + len(r.strict.JSON()) + len(r.strict.Message)
	if r.plain != r.strict {
		size += 300
	}
	return size
}
