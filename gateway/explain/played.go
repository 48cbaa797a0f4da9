package explain

import "time"

// MaxPlayed is how much of an answer a call of the playground keeps, in bytes.
const MaxPlayed = 1 << 20

// Played is what came of a call of the playground.
type Played struct {
	Sent      bool          // the call reached the API that was meant; false: nothing was done but explaining
	Status    int           // of the answer
	Headers   []Header      // of the answer, in order
	Body      []byte        // at most MaxPlayed
	Cut       bool          // the body was longer, or it was still coming when time was up
	RequestID string        // X-Request-Id, by which a refusal is found again
	Took      time.Duration // in the gateway and upstream together
	Upstream  time.Duration // 0: nothing was called
	Report    *Report       // the explanation, made just before the call
}
