package graphql

import (
	"github.com/sluicegate/sluice/gateway/graphql/request"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// notRun stands for the operations of a batch that would have passed by
// themselves.
const notRun = `{"errors":[{"message":"Not run, because another operation of the batch was refused."}]}`

// batch governs operations that come together. They count as many calls. One
// that is refused has all of them refused: the answer tells, at its place, why,
// and has the status of the first.
func (s *Stage) batch(ex *pipeline.Exchange, w *work, list []request.Request) pipeline.Verdict {
	ex.Calls = uint16(len(list))
	may, refused := s.rulesFor(ex)
	if refused != nil {
		return s.refuse(ex, refused)
	}
	var first *pipeline.Rejection
	var results [][]byte
	rewrite := false
	for i := range list {
		_, stored, refused := s.judge(ex, w, &list[i], may)
		rewrite = rewrite || stored
		if refused == nil {
			continue
		}
		if ex.Rejection != nil {
			return pipeline.Rejected // by the rate
		}
		if first == nil {
			first, results = refused, make([][]byte, len(list))
		}
		results[i] = inAnswer(refused)
	}
	if first != nil {
		body := pipeline.NewGraphQLRejection(first.Reason, first.Status, first.Message, joined(results))
		return s.refuse(ex, body)
	}
	if rewrite {
		w.expandAll(ex, list)
	}
	return pipeline.Next
}

// inAnswer is a refusal as one of several answers.
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
