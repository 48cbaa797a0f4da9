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
	// X-Request-Id of the answer.
	ID string `json:"id"`
	// Time of the request.
	At time.Time `json:"at"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org_id,omitempty"`
	// Id of the API that the request reached.
	API string `json:"api_id"`
	// Version of the API that the request selected; left out if the API has one only.
	Version string `json:"version,omitempty"`
	// Hash of the key; left out without a known key.
	Key string `json:"key_hash,omitempty"`
	// Short form of the key's hash, as logs have it.
	KeyName string `json:"key,omitempty"`
	// Ids of the policies of a caller who has them by a token's claims.
	Policies []string `json:"policies,omitempty"`
	// Method of the request.
	Method string `json:"method"`
	// Host that the request named.
	Host string `json:"host,omitempty"`
	// Path and query as they were sent; values of parameters that may authenticate are masked.
	URL string `json:"url"`
	// Lines of the headers that rules look at; none that may authenticate.
	Headers []string `json:"headers,omitempty"`
	// IP address of the caller.
	Client string `json:"client,omitempty"`
	// Whether the request came over TLS.
	TLS bool `json:"tls,omitempty"`
	// Size of the body in bytes, as it was announced; -1: it came in chunks.
	Length int64 `json:"length,omitempty"`
	// Body of a GraphQL request; strings whose names suggest a secret are masked.
	Body string `json:"body,omitempty"`
	// Whether the request is GraphQL, and its body was too large or could not be read.
	Cut bool `json:"body_left_out,omitempty"`
	// Name of the GraphQL operation; left out without one.
	Operation string `json:"operation,omitempty"`
	// HTTP status of the answer; 0: nothing was answered.
	Status int `json:"status"`
	// Reason for which the gateway refused the request; left out: it did not.
	Reason string `json:"reason,omitempty"`
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
