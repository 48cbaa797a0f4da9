package usage

import (
	"fmt"
	"strings"
	"time"
)

// A Refusal is the record of one refused request. It has neither query, body nor
// credentials of the request; texts are cut to a bounded size.
type Refusal struct {
	// X-Request-Id of the answer.
	ID string `json:"id"`
	// Time of the request.
	At time.Time `json:"at"`
	// Id of the organisation that the API belongs to.
	Org string `json:"org_id,omitempty"`
	// Id of the API that the request reached; empty: none.
	API string `json:"api_id"`
	// Name of that API.
	APIName string `json:"api_name,omitempty"`
	// Version of the API that the request selected; left out if the API has one only.
	Version string `json:"version,omitempty"`
	// Hash of the key; left out without a known key.
	Key string `json:"key_hash,omitempty"`
	// Short form of the key's hash, as logs have it.
	KeyName string `json:"key,omitempty"`
	// Name of the stage that refused the request.
	Stage string `json:"stage"`
	// HTTP status of the answer.
	Status int `json:"status"`
	// Reason of the refusal, as metrics and logs have it.
	Reason string `json:"reason"`
	// Message that the client got.
	Message string `json:"message,omitempty"`
	// Method of the request.
	Method string `json:"method,omitempty"`
	// Path of the request as it was sent, without the query.
	Path string `json:"path,omitempty"`
	// IP address of the caller.
	Client string `json:"client,omitempty"`
	// Id of the policy that decided; left out if none did.
	Policy string `json:"policy,omitempty"`
	// Revision of the configuration that was in force.
	Revision string `json:"revision,omitempty"`
	// Limits of the caller as they were at that time.
	Limits []Counted `json:"limits,omitempty"`
	// GraphQL answer, or its beginning.
	Errors string `json:"errors,omitempty"`
	// Address of the target that was called without success.
	Upstream string `json:"upstream,omitempty"`
	// Reason for which that call failed.
	Cause string `json:"cause,omitempty"`
}

// Counted is the state of a limit.
type Counted struct {
	// Kind of the limit.
	Kind string `json:"kind" enum:"rate,quota"`
	// Calls allowed in a period.
	Max int64 `json:"max"`
	// Length of the period; left out if the limit never renews.
	Period string `json:"period,omitempty"`
	// Calls that were left.
	Remaining int64 `json:"remaining"`
	// Time at which the limit renews; left out if it does not.
	ResetAt *time.Time `json:"reset_at,omitempty"`
}

// Bounds of the refusals of a batch.
const (
	MaxRefusals   = 500
	RefusalsOfKey = 20 // the newest of one key that a gateway keeps between two batches
	maxLimits     = 8
	maxRefusal    = 4096 // bytes of all texts of a refusal
)

func (r *Refusal) check() error {
	switch {
	case r.ID == "":
		return fmt.Errorf("id must not be empty")
	case r.API == "":
		return fmt.Errorf("api_id must not be empty")
	case r.Reason == "":
		return fmt.Errorf("reason must not be empty")
	case r.Status < 0 || r.Status > 999:
		return fmt.Errorf("status is %d; it must be between 0 and 999", r.Status)
	case r.At.Unix() < 0 || r.At.Unix() > maxMinute:
		return fmt.Errorf("at is %s; it must be a time of the years 1970 to 9999", r.At.Format(time.RFC3339))
	case len(r.Limits) > maxLimits:
		return fmt.Errorf("limits has %d elements; at most %d are taken", len(r.Limits), maxLimits)
	}
	texts := []string{
		r.ID, r.Org, r.API, r.APIName, r.Version, r.Key, r.KeyName, r.Stage, r.Reason, r.Message,
		r.Method, r.Path, r.Client, r.Policy, r.Revision, r.Errors, r.Upstream, r.Cause,
	}
	names := []string{
		"id", "org_id", "api_id", "api_name", "version", "key_hash", "key", "stage", "reason", "message",
		"method", "path", "client", "policy", "revision", "errors", "upstream", "cause",
	}
	for i := range r.Limits {
		texts, names = append(texts, r.Limits[i].Kind, r.Limits[i].Period), append(names, "limits.kind", "limits.period")
	}
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size > maxRefusal {
		return fmt.Errorf("texts have %d bytes; at most %d are taken", size, maxRefusal)
	}
	return checkTexts(names, texts...)
}

// Clean returns a text that can be stored: UTF-8 without the character 0.
func Clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}
