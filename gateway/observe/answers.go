package observe

import "github.com/prometheus/client_golang/prometheus"

// Target is how a target of an API is.
type Target struct {
	API     string
	URL     string
	Up      bool   // it is called
	Ejected uint64 // times that it was left out because calls failed
}

// Breaker is how a circuit breaker of an API is.
type Breaker struct {
	API   string
	Path  string // of the calls that it is for; "" for all
	Open  bool   // calls are refused
	Trips uint64 // ever
}

// AnswerCache is what became of calls whose answers may be kept.
type AnswerCache struct {
	Hits, Misses   uint64
	Shared         uint64 // calls that waited, and were given the answer to another one
	Entries, Bytes int
}

var (
	targetUp      = describe("target_up", "Whether a target is called: 1, or 0 when it is left out.", "api", "target")
	targetEjected = describe("target_ejections_total", "How often a target was left out because calls to it failed.", "api", "target")
	breakerOpen   = describe("breaker_open", "Whether a circuit breaker refuses calls: 1 or 0.", "api", "path")
	breakerTrips  = describe("breaker_trips_total", "How often a circuit breaker began to refuse calls.", "api", "path")
	answerHits    = describe("answer_cache_total", "Calls whose answers may be kept, by what became of them.", "result")
	answerEntries = describe("answer_cache_entries", "Answers that are kept.")
	answerBytes   = describe("answer_cache_bytes", "Memory that kept answers take.")
	answerMetrics = []*prometheus.Desc{targetUp, targetEjected, breakerOpen, breakerTrips, answerHits, answerEntries, answerBytes}
)

// collectAnswers shows how targets, breakers and kept answers are.
func (s *Sources) collectAnswers(ch chan<- prometheus.Metric) {
	if s.Targets != nil {
		for _, t := range s.Targets() {
			ch <- gauge(targetUp, oneIf(t.Up), validLabel(t.API), validLabel(t.URL))
			ch <- total(targetEjected, t.Ejected, validLabel(t.API), validLabel(t.URL))
		}
	}
	if s.Breakers != nil {
		for _, b := range s.Breakers() {
			ch <- gauge(breakerOpen, oneIf(b.Open), validLabel(b.API), validLabel(b.Path))
			ch <- total(breakerTrips, b.Trips, validLabel(b.API), validLabel(b.Path))
		}
	}
	if s.Answers != nil {
		c := s.Answers()
		ch <- total(answerHits, c.Hits, "hit")
		ch <- total(answerHits, c.Misses, "miss")
		ch <- total(answerHits, c.Shared, "shared")
		ch <- gauge(answerEntries, float64(c.Entries))
		ch <- gauge(answerBytes, float64(c.Bytes))
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
