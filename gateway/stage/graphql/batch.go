package graphql

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// notRun is the answer for the other operations of a refused batch.
const notRun = `{"errors":[{"message":"Not run, because another operation of the batch was refused."}]}`

// batch evaluates the operations of a batch. Each counts as a call. The first
// refusal refuses the whole batch: the response has its status and, at its index,
// its errors. All operations together may have as many tokens as one document,
// which bounds the cost of a batch.
func (s *Stage) batch(ex *pipeline.Exchange, w *work, list []request.Request) pipeline.Verdict {
	ex.Charge.Calls = uint16(len(list))
	may, refused := s.rulesFor(ex)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	rewrite, tokens := false, 0
	for i := range list {
		found, stored, refused := s.judge(ex, w, &list[i], may)
		if refused == nil {
			if tokens += found.facts.Tokens; s.opts.Ceilings.Tokens > 0 && tokens > s.opts.Ceilings.Tokens {
				refused = batchTooLarge
			}
		}
		if ex.Rejection != nil {
			return pipeline.Rejected // by the rate
		}
		if refused == nil && found.facts.Kind == syntax.Subscription {
			refused = notInBatch
		}
		if refused != nil {
			results := make([][]byte, len(list))
			results[i] = inAnswer(refused)
			return s.refuse(ex, pipeline.NewGraphQLRejection(refused.Reason, refused.Status, refused.Message, joined(results)))
		}
		rewrite = rewrite || stored
	}
	if rewrite {
		if refused := w.expandAll(ex, list, s.opts.MaxBody); refused != nil {
			return s.refuse(ex, refused)
		}
	}
	return pipeline.Next
}

var notInBatch = request.Refusal(pipeline.ReasonGraphQLMedia, 400, "A subscription cannot be part of a batch.")

var batchTooLarge = request.Refusal(pipeline.ReasonGraphQLTooLarge, 400, "The operations of the batch have more tokens together than one document may have.")

// inAnswer is a refusal as one element of a response.
func inAnswer(r *pipeline.Rejection) []byte {
	if r.GraphQL() {
		return r.JSON()
	}
	return request.Refusal(r.Reason, r.Status, r.Message).JSON()
}

func joined(results [][]byte) []byte {
	b := []byte{'['}
	for i, one := range results {
		if i > 0 {
			b = append(b, ',')
		}
		if one == nil {
			b = append(b, notRun...)
		}
		b = append(b, one...)
	}
	return append(b, ']')
}
