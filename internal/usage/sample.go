package usage

import (
	"fmt"
	"net/netip"
	"time"
)

// A Sample is a request that a gateway recorded, so that it can be evaluated again under
// a changed configuration. It has no credentials: the identity of the key stands in
// their place. A body is part of it for GraphQL only.
type Sample struct {
	ID        string    `json:"id" doc:"X-Request-Id of the answer"`
	At        time.Time `json:"at"`
	Org       string    `json:"org_id,omitempty" doc:"of the API"`
	API       string    `json:"api_id"`
	Version   string    `json:"version,omitempty" doc:"of the API; empty when there is no choice"`
	Key       string    `json:"key_hash,omitempty" doc:"identity of the key; empty without a known one"`
	KeyName   string    `json:"key,omitempty" doc:"what logs call the key"`
	Policies  []string  `json:"policies,omitempty" doc:"of a caller who has them by a token's claims"`
	Method    string    `json:"method"`
	Host      string    `json:"host,omitempty"`
	URL       string    `json:"url" doc:"path and query, as sent; values of parameters that may authenticate are masked"`
	Headers   []string  `json:"headers,omitempty" doc:"lines of the headers that rules look at; none that may authenticate"`
	Client    string    `json:"client,omitempty" doc:"address of the caller"`
	TLS       bool      `json:"tls,omitempty"`
	Length    int64     `json:"length,omitempty" doc:"of the body in bytes, as announced; -1: it came in chunks"`
	Body      string    `json:"body,omitempty" doc:"of a GraphQL request; strings whose names suggest a secret are masked"`
	Cut       bool      `json:"body_left_out,omitempty" doc:"the request is GraphQL, and its body was too large or could not be read"`
	Operation string    `json:"operation,omitempty" doc:"name of the GraphQL operation"`
	Status    int       `json:"status" doc:"that was answered; 0 when nothing was"`
	Reason    string    `json:"reason,omitempty" doc:"why the gateway refused the request; empty when it did not"`
}

// Bounds of samples.
const (
	MaxSamples      = 200       // of a batch
	MaxSampleBody   = 16 << 10  // bytes of a body
	MaxSampleURL    = 4 << 10   // bytes of a path with its query
	MaxSampleTexts  = 26 << 10  // bytes of all texts of a sample
	maxSampleList   = 100       // headers, and policies
	maxSamplesTexts = 800 << 10 // bytes of the texts of all samples of a batch
)

// Size returns the number of bytes of all texts of a sample.
func (s *Sample) Size() int {
	size := 0
	_, texts := s.texts()
	for _, text := range texts {
		size += len(text)
	}
	return size + len(s.URL) + len(s.Body)
}

// texts returns the texts that are bounded as those of rows are, with their names.
func (s *Sample) texts() (names, texts []string) {
	names = []string{"id", "org_id", "api_id", "version", "key_hash", "key", "method", "host", "client", "operation", "reason"}
	texts = []string{s.ID, s.Org, s.API, s.Version, s.Key, s.KeyName, s.Method, s.Host, s.Client, s.Operation, s.Reason}
	for i := range s.Headers {
		names, texts = append(names, "headers"), append(texts, s.Headers[i])
	}
	for i := range s.Policies {
		names, texts = append(names, "policies"), append(texts, s.Policies[i])
	}
	return names, texts
}

func (s *Sample) check() error {
	switch {
	case s.ID == "":
		return fmt.Errorf("id must not be empty")
	case s.API == "":
		return fmt.Errorf("api_id must not be empty")
	case s.Method == "":
		return fmt.Errorf("method must not be empty")
	case s.Status < 0 || s.Status > 999:
		return fmt.Errorf("status is %d; it must be between 0 and 999", s.Status)
	case s.Length < -1:
		return fmt.Errorf("length is %d; it must be -1 or more", s.Length)
	case s.At.Unix() < 0 || s.At.Unix() > maxMinute:
		return fmt.Errorf("at is %s; it must be a time of the years 1970 to 9999", s.At.Format(time.RFC3339))
	case len(s.Headers) > maxSampleList:
		return fmt.Errorf("headers has %d elements; at most %d are taken", len(s.Headers), maxSampleList)
	case len(s.Policies) > maxSampleList:
		return fmt.Errorf("policies has %d elements; at most %d are taken", len(s.Policies), maxSampleList)
	case len(s.URL) > MaxSampleURL:
		return fmt.Errorf("url has %d bytes; at most %d are taken", len(s.URL), MaxSampleURL)
	case len(s.Body) > MaxSampleBody:
		return fmt.Errorf("body has %d bytes; at most %d are taken", len(s.Body), MaxSampleBody)
	case s.Size() > MaxSampleTexts:
		return fmt.Errorf("texts have %d bytes; at most %d are taken", s.Size(), MaxSampleTexts)
	}
	if s.Client != "" {
		if _, err := netip.ParseAddr(s.Client); err != nil {
			return fmt.Errorf("client must be an address, such as 203.0.113.9")
		}
	}
	for name, text := range map[string]string{"url": s.URL, "body": s.Body} {
		if text != Clean(text) {
			return fmt.Errorf("%s must be UTF-8 without the character 0", name)
		}
	}
	names, texts := s.texts()
	return checkTexts(names, texts...)
}

// Fits returns how many of some samples one batch takes.
func Fits(all []Sample) int {
	size := 0
	for i := range min(len(all), MaxSamples) {
		if size += all[i].Size(); size > maxSamplesTexts {
			return i
		}
	}
	return min(len(all), MaxSamples)
}
