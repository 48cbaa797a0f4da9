package webhooks

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/webhooks"
)

// A Webhook is where somebody wants to be told of events. Of what a caller sends,
// name, url and events count.
type Webhook struct {
	ID          string   `json:"id"`
	Org         string   `json:"org_id"`
	Developer   string   `json:"developer_id" doc:"whose it is; empty: the organisation's"`
	Name        string   `json:"name"`
	URL         string   `json:"url" doc:"where messages are posted to; https"`
	Events      []string `json:"events" doc:"types of events; * is every one"`
	Enabled     bool     `json:"enabled"`
	Disabled    *string  `json:"disabled_at,omitempty"`
	DisabledFor string   `json:"disabled_for,omitempty" doc:"why it is not told any more"`
	Failing     *string  `json:"failing_since,omitempty" doc:"nothing could be delivered since then"`
	FormerUntil *string  `json:"former_secret_until,omitempty" doc:"until then messages are signed with the former secret, too"`
	Created     string   `json:"date_created"`
	Updated     string   `json:"date_updated"`
}

// Wanted is a webhook that somebody wants to have.
type Wanted struct {
	Name      string   `json:"name"`
	URL       string   `json:"url"`
	Events    []string `json:"events"`
	Secret    string   `json:"secret,omitempty" doc:"whsec_ and 24 to 64 bytes in base64; left out: one is made and shown this once"`
	Developer string   `json:"developer_id,omitempty" doc:"whose it is to be; left out: the organisation's"`
}

// Rotation is how a webhook gets another secret.
type Rotation struct {
	Secret string `json:"secret,omitempty" doc:"as when a webhook is made"`
	Grace  string `json:"grace,omitempty" doc:"how long messages are signed with the former secret, too; at most 168h" default:"24h"`
}

// Shown is a secret that is shown once.
type Shown struct {
	Secret string `json:"secret,omitempty"`
}

// List is one page of webhooks.
type List struct {
	Data  []Webhook `json:"Data"`
	Pages int64     `json:"Pages"`
}

// EventType is a type of events that webhooks can be told of.
type EventType struct {
	Type string `json:"type"`
	When string `json:"when"`
}

// Types is every type of events.
type Types struct {
	Data  []EventType `json:"Data"`
	Pages int64       `json:"Pages"`
}

// types lists what webhooks can be told of. How an organisation runs its APIs is not
// for developers.
func types(developers bool) []EventType {
	all := []EventType{
		{record.RequestSubmitted, "a developer asked for access"},
		{record.RequestUpdated, "a key request was changed"},
		{record.RequestApproved, "a key request was approved"},
		{record.RequestRejected, "a key request was rejected"},
		{record.KeyCreated, "a developer got a key"},
		{record.KeyUpdated, "a developer's key was changed"},
		{record.KeyRotated, "a developer's key was replaced by another"},
		{record.KeyRevoked, "a developer's key was revoked"},
	}
	if developers {
		return all
	}
	return append(all, []EventType{
		{record.APICreated, "an API was made"},
		{record.APIUpdated, "an API was changed"},
		{record.APIDeleted, "an API was deleted"},
	}...)
}

// allEvents stands for every type of events.
const allEvents = "*"

// Bounds of what a webhook has.
const (
	maxName = 200
	maxURL  = 2048
)

// check lists what is wrong with a webhook, which may be told of what is known.
func (s *Service) check(name, target string, events []string, known []EventType) (problems []string) {
	if len(name) > maxName || !rest.Printable(name) {
		problems = append(problems, fmt.Sprintf("name: must be printable text of at most %d bytes", maxName))
	}
	if err := s.checkURL(target); err != nil {
		problems = append(problems, "url: "+err.Error())
	}
	if len(events) == 0 {
		problems = append(problems, `events: must name at least one type, or "*" for every one`)
	}
	for i, e := range events {
		if e != allEvents && !slices.ContainsFunc(known, func(t EventType) bool { return t.Type == e }) {
			problems = append(problems, fmt.Sprintf("events[%d]: %.60q is none of the types that GET /api/portal/webhooks/events lists", i, e))
		}
		if slices.Contains(events[:i], e) {
			problems = append(problems, fmt.Sprintf("events[%d]: %.60q is there twice", i, e))
		}
		if len(problems) > 20 {
			break
		}
	}
	return problems
}

// checkURL says what is wrong with a URL. Where a name leads to is seen when a
// message is sent.
func (s *Service) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return fmt.Errorf("is missing")
	case len(text) > maxURL:
		return fmt.Errorf("must have at most %d bytes", maxURL)
	case err != nil || !rest.Printable(text) || strings.ContainsRune(text, ' '):
		return fmt.Errorf("is no URL, such as https://example.com/hooks")
	case u.Scheme != "https" && (u.Scheme != "http" || !s.deps.Outbound.Private):
		return fmt.Errorf("must begin with https://")
	case u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("names no host")
	case u.User != nil:
		return fmt.Errorf("must not hold a user or password")
	case u.Fragment != "":
		return fmt.Errorf("must not have a fragment (#…)")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("has a port that is not in 1…65535")
	}
	if port == "" {
		port = "443"
	}
	if err := s.deps.Outbound.Check(net.JoinHostPort(u.Hostname(), port)); err != nil {
		return fmt.Errorf("leads to an address that messages are not sent to: %w", err)
	}
	return nil
}

func webhookOf(r *webhooks.Row) Webhook {
	w := Webhook{
		ID: r.ID, Org: r.OrgID, Name: r.Name, URL: r.URL, Events: r.Events, Enabled: r.DisabledAt == nil,
		Disabled: moment(r.DisabledAt), DisabledFor: r.DisabledFor, Failing: moment(r.FailingSince),
		FormerUntil: moment(r.FormerUntil), Created: *moment(&r.CreatedAt), Updated: *moment(&r.UpdatedAt),
	}
	if r.DeveloperID != nil {
		w.Developer = *r.DeveloperID
	}
	return w
}

// moment writes a time as JSON has it; nil stays nil.
func moment(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(t.UTC().Format(time.RFC3339))
}

// A deed is what was done to a webhook, which looked so before and after; either
// may be nil.
type deed struct {
	action        string
	before, after *webhooks.Row
}

// audit notes what was done to a webhook.
func audit(ctx context.Context, tx *store.Tx, by store.Author, done deed) error {
	d := store.Deed{Action: done.action, Kind: "webhook"}
	for _, side := range []struct {
		row  *webhooks.Row
		body *[]byte
	}{{done.before, &d.Before}, {done.after, &d.After}} {
		if side.row == nil {
			continue
		}
		body, err := rest.Encode(webhookOf(side.row))
		if err != nil {
			return err
		}
		d.ID, *side.body = side.row.ID, body
	}
	return tx.Audit(ctx, by, d)
}
