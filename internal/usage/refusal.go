package usage

import (
	"fmt"
	"strings"
	"time"
)

// A Refusal is the record of one refused request. It has neither query, body nor
// credentials of the request; texts are cut to a bounded size.
type Refusal struct {
	ID       string    `json:"id" doc:"X-Request-Id of the answer"`
	At       time.Time `json:"at"`
	Org      string    `json:"org_id,omitempty" doc:"of the API"`
	API      string    `json:"api_id"`
	APIName  string    `json:"api_name,omitempty"`
	Version  string    `json:"version,omitempty" doc:"of the API; empty when there is no choice"`
	Key      string    `json:"key_hash,omitempty" doc:"identity of the key; empty without a known one"`
	KeyName  string    `json:"key,omitempty" doc:"what logs call the key"`
	Stage    string    `json:"stage" doc:"that refused the request"`
	Status   int       `json:"status"`
	Reason   string    `json:"reason"`
	Message  string    `json:"message,omitempty"`
	Method   string    `json:"method,omitempty"`
	Path     string    `json:"path,omitempty" doc:"as it was sent, without the query"`
	Client   string    `json:"client,omitempty" doc:"address of the caller"`
	Policy   string    `json:"policy,omitempty"`
	Revision string    `json:"revision,omitempty" doc:"of the configuration that was in force"`
	Limits   []Counted `json:"limits,omitempty" doc:"their state at that time"`
	Errors   string    `json:"errors,omitempty" doc:"the GraphQL answer, or its beginning"`
	Upstream string    `json:"upstream,omitempty" doc:"address of the target that was called without success"`
	Cause    string    `json:"cause,omitempty" doc:"why that call failed"`
}

// Counted is the state of a limit.
type Counted struct {
	Kind      string     `json:"kind" doc:"rate or quota"`
	Max       int64      `json:"max"`
	Period    string     `json:"period,omitempty" doc:"empty when it never renews"`
	Remaining int64      `json:"remaining"`
	ResetAt   *time.Time `json:"reset_at,omitempty"`
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
