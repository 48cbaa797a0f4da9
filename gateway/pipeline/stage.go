// Package pipeline is the vocabulary that the stages of a request share: the
// stage, the exchange in its hands, the verdict it gives, the rejection it may
// end with, and the compiled API whose stages these are.
package pipeline

// A Stage is one step of an API's request path, compiled for that API alone.
// Handle runs on every request, concurrently: it does not allocate, and keeps
// no reference to ex nor to bytes reached through it.
type Stage interface{ Handle(ex *Exchange) Verdict }

// A Verdict says where an exchange goes after a stage.
type Verdict uint8

const (
	Next     Verdict = iota // to the following stage
	Answered                // straight to the response side: the answer is complete
	Rejected                // to the gateway's answer, which writes ex.Rejection
)

// Run walks stages in order and returns the first verdict other than Next, or
// Next when every stage let the exchange pass. Which stage ended the walk is left
// in ex.Stopped.
func Run(stages []Stage, ex *Exchange) Verdict {
	for i, s := range stages {
		if v := s.Handle(ex); v != Next {
			ex.Stopped = uint8(i)
			return v
		}
	}
	return Next
}
