package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// An Entry is a message in the log of deliveries.
type Entry struct {
	// Id of the message; webhooks get it in the header webhook-id.
	ID string `json:"id"`
	// webhook: to a webhook of the portal; hook: to a URL of the portal's configuration; letter: an
	// e-mail.
	Kind string `json:"kind" enum:"webhook,hook,letter"`
	// Id of the webhook, the URL of the portal's configuration, or the address of a letter.
	Target string `json:"target"`
	// Id of the developer that the message is for or about; empty: none.
	Developer string `json:"developer_id"`
	// Type of the event, or name of the letter.
	// Example: "key_event.created"
	Event string `json:"event"`
	// pending: it waits for an attempt; sending: it is being sent; done: it was accepted; failed: it
	// was given up; kept: it is in the local mailbox.
	State string `json:"state" enum:"pending,sending,done,failed,kept"`
	// Attempts since the message was last put into the queue.
	Attempts int `json:"attempts"`
	// HTTP status of the last answer; 0: there was none.
	Status int `json:"status"`
	// Reason for which the last attempt failed; empty: it did not.
	Error string `json:"error"`
	// Time of the next attempt (RFC 3339); left out: there will be none.
	NextAttempt *string `json:"next_attempt,omitempty" format:"date-time"`
	// Time of the last attempt (RFC 3339); left out: there was none.
	LastAttempt *string `json:"last_attempt,omitempty" format:"date-time"`
	// Time at which the message was put into the queue (RFC 3339).
	Created string `json:"date_created" format:"date-time"`
	// Time at which the message was done or given up (RFC 3339); left out: it is not.
	Finished *string `json:"date_finished,omitempty" format:"date-time"`

	// Last 20 attempts, oldest first; in the answer about one message only.
	Tries rest.Raw[[]Try] `json:"tries,omitempty"`
	// Body of the message, as it is sent; in the answer about one message only, for callers who may
	// see it.
	Payload *string `json:"payload,omitempty"`
}

// A Try is one attempt to send a message.
type Try struct {
	// Time of the attempt.
	At time.Time `json:"at"`
	// HTTP status of the answer; 0: there was none.
	Status int `json:"status"`
	// Reason for which it failed; empty: it did not.
	Error string `json:"error"`
	// Milliseconds that it took; left out for developers if it failed.
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// A Log is one page of messages.
type Log struct {
	// Messages of the page, newest first.
	Data []Entry `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

const noDelivery = "Delivery does not exist"

// Routes lists the routes of the log of deliveries.
func (q *Queue) Routes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/portal/deliveries", Summary: "List messages to webhooks and letters, newest first", Tag: "Webhooks", Role: rest.Viewer,
			Query: append([]string{"delivery_state", "webhook", "developer"}, rest.Paging...), Reply: Log{}, Wrong: []int{400}, Handle: q.list,
		},
		{
			Method: "GET", Path: "/api/portal/deliveries/{id}", Summary: "Get a message; what was sent is for approvers", Tag: "Webhooks", Role: rest.Viewer,
			Reply: Entry{}, Wrong: []int{404}, Handle: q.get,
		},
		{
			Method: "POST", Path: "/api/portal/deliveries/{id}/replay", Summary: "Send a message once more, with the same id", Tag: "Webhooks", Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Handle: q.replay,
		},
		{
			Method: "GET", Path: "/api/portal/me/deliveries/{id}", Summary: "Get a message to a webhook of mine, as it was sent", Tag: "Portal", Role: rest.Developer,
			Reply: Entry{}, Wrong: []int{404}, Handle: q.get,
		},
		{
			Method: "POST", Path: "/api/portal/me/deliveries/{id}/replay", Summary: "Send a message to a webhook of mine once more, with the same id", Tag: "Portal", Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Handle: q.replay,
		},
	}
}

func (q *Queue) list(ctx context.Context, c *rest.Call) (any, error) {
	return q.List(ctx, c, store.MessageFilter{Target: c.Query("webhook"), Developer: c.Query("developer")})
}

// List returns one page of the messages that match the filter and the parameter
// delivery_state of the call.
func (q *Queue) List(ctx context.Context, c *rest.Call, f store.MessageFilter) (*Log, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	switch f.State = c.Query("delivery_state"); f.State {
	case "", store.MessagePending, store.MessageDone, store.MessageFailed, store.MessageKept:
	default:
		return nil, rest.BadRequest(fmt.Sprintf("delivery_state must be pending, done, failed or kept, not %.40q", f.State))
	}
	rows, total, err := q.opts.Store.ListMessages(ctx, c.Who.Org, f, page)
	if err != nil {
		return nil, err
	}
	log := &Log{Data: make([]Entry, 0, len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		log.Data = append(log.Data, entryFor(c, &rows[i]))
	}
	return log, nil
}

func (q *Queue) get(ctx context.Context, c *rest.Call) (any, error) {
	row, err := q.opts.Store.MessageByID(ctx, c.Who.Org, c.Param("id"))
	if err == nil && !concerns(c, &row) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, rest.Missing(err, noDelivery)
	}
	e := entryFor(c, &row)
	if e.Tries, err = triesFor(c, &row); err != nil {
		return nil, err
	}
	if may(c) && !row.Sealed {
		payload := string(row.Payload)
		e.Payload = &payload
	}
	return e, nil
}

// concerns reports whether the caller may see a message. Developers see those to their
// webhooks.
func concerns(c *rest.Call, r *store.Message) bool {
	return c.Who.Role != rest.Developer || r.Kind == Webhook && r.DeveloperID == c.Who.ID
}

// may reports whether the caller may see the payload of a message.
func may(c *rest.Call) bool {
	return c.Who.Role == rest.Developer || (&rest.Route{Role: rest.Approver}).Allows(c.Who.Role)
}

func (q *Queue) replay(ctx context.Context, c *rest.Call) (any, error) {
	id := c.Param("id")
	err := q.opts.Store.InTx(ctx, func(tx *store.Tx) error {
		row, err := tx.LockMessage(ctx, c.Who.Org, id)
		if err != nil {
			return err
		}
		if !concerns(c, &row) {
			return store.ErrNotFound
		}
		if err := replayable(&row); err != nil {
			return err
		}
		if err := tx.ReplayMessage(ctx, id); err != nil {
			return err
		}
		return tx.Audit(ctx, c.Author(c.Source()), store.AuditEntry{Action: "replayed", Kind: "delivery", ID: id})
	})
	if err != nil {
		return nil, rest.Missing(err, noDelivery)
	}
	return rest.Done(id, nil), nil
}

func replayable(r *store.Message) error {
	switch {
	case r.State == store.MessagePending && isLeased(r):
		return rest.Refuse(fasthttp.StatusConflict, "The message is being sent just now")
	case r.State == store.MessageKept:
		return rest.Refuse(fasthttp.StatusConflict, "The letter is in the local mailbox; it was not sent anywhere")
	case r.Sealed && len(r.Payload) == 0:
		return rest.Refuse(fasthttp.StatusConflict, "The message held a secret, and was forgotten when it was finished")
	}
	return nil
}

// isLeased reports whether a message was being sent when it was read.
func isLeased(r *store.Message) bool { return r.LeasedUntil.After(time.Now()) }

// Failed is what developers are told of an attempt that failed, whatever the cause:
// causes and times would show which names and addresses there are in the operator's
// network. The status is shown, as it is that of an answer.
const Failed = "the message was not accepted"

// entryFor is entryOf for the caller.
func entryFor(c *rest.Call, r *store.Message) Entry {
	e := entryOf(r)
	if c.Who.Role == rest.Developer && e.Error != "" {
		e.Error = Failed
	}
	return e
}

// triesFor returns the attempts to send a message, for the caller.
func triesFor(c *rest.Call, r *store.Message) ([]byte, error) {
	if c.Who.Role != rest.Developer {
		return r.Tries, nil
	}
	var tries []map[string]any
	if err := json.Unmarshal(r.Tries, &tries); err != nil {
		return nil, fmt.Errorf("reading the attempts of delivery %s: %w", r.ID, err)
	}
	for _, one := range tries {
		if one["error"] != "" {
			one["error"] = Failed
			delete(one, "milliseconds")
		}
	}
	return rest.Encode(tries)
}

func entryOf(r *store.Message) Entry {
	e := Entry{
		ID: r.ID, Kind: r.Kind, Target: r.Target, Developer: r.DeveloperID, Event: r.Event, State: r.State,
		Attempts: int(r.Attempts), Status: int(r.Status), Error: r.Error,
		LastAttempt: rest.Time(r.AttemptedAt), Created: *rest.Time(&r.CreatedAt), Finished: rest.Time(r.FinishedAt),
	}
	switch {
	case r.State == store.MessagePending && isLeased(r):
		e.State = "sending"
	case r.State == store.MessagePending:
		e.NextAttempt = rest.Time(&r.NextAt)
	}
	return e
}
