package event

import "time"

// Upstream is what an event about a target of an API, or about calls to it, contains.
// It never changes.
type Upstream struct {
	URL    string // that is called, without its query; "" of a breaker
	Host   string // host and port of URL
	Status int    // of the answer that made the difference; 0: there was none
	Error  string // why there was none
	Path   string // of a breaker: the calls that it is for; "" for all
	Open   bool   // of a breaker: calls are refused
}

// Certificate is the certificate that an event is about. It never changes.
type Certificate struct {
	Sum      string   // SHA-256, 64 hexadecimal digits
	Names    []string // the server names that it is for; none of a client
	NotAfter time.Time
}
