package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// An Opener opens sealed payloads.
type Opener interface {
	Open(r *store.Message) ([]byte, error)
}

// A Mailbox keeps letters where no mail server is configured. They are read by REST.
type Mailbox struct {
	store *store.Store
	open  Opener
	most  int
}

// NewMailbox returns a mailbox that keeps at most most letters of an organisation.
func NewMailbox(st *store.Store, open Opener, most int) *Mailbox {
	return &Mailbox{store: st, open: open, most: most}
}

// Send implements Sender: the letter stays in the database.
func (b *Mailbox) Send(_ context.Context, d Delivery) Outcome {
	return Outcome{Result: Kept, Note: func(ctx context.Context, tx *store.Tx, _ bool) error {
		return tx.TrimLetters(ctx, d.Org, b.most)
	}}
}

// Routes lists the routes of the mailbox.
func (b *Mailbox) Routes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/portal/mailbox", Summary: "List letters that no server was there to send; q is the address that they went to", Tag: "Letters", Role: rest.Admin,
			Query: append([]string{"q"}, rest.Paging...), Reply: letterList{}, Wrong: []int{400}, Handle: b.list,
		},
		{
			Method: "GET", Path: "/api/portal/mailbox/{id}", Summary: "Read a letter, which is noted in the audit log", Tag: "Letters", Role: rest.Admin,
			Reply: letterShown{}, Wrong: []int{404}, Handle: b.read,
		},
		{
			Method: "DELETE", Path: "/api/portal/mailbox/{id}", Summary: "Delete a letter", Tag: "Letters", Role: rest.Admin,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: b.delete,
		},
	}
}

// LetterHead is a letter on a list.
type LetterHead struct {
	// Id of the letter.
	ID string `json:"id"`
	// Name of the letter.
	// Example: "key_email"
	Kind string `json:"kind"`
	// E-mail address that the letter is for.
	To string `json:"to"`
	// Id of the developer that the letter is for; empty: none.
	Developer string `json:"developer_id"`
	// Time at which the letter was written.
	CreatedAt time.Time `json:"created_at"`
}

// letterShown is a whole letter.
type letterShown struct {
	LetterHead
	// E-mail address of the sender.
	From string `json:"from"`
	// Subject of the letter.
	Subject string `json:"subject"`
	// Letter as plain text.
	Text string `json:"text"`
	// Letter as HTML.
	HTML string `json:"html"`
}

type letterList struct {
	// Letters of the page, newest first, without their texts.
	Data []LetterHead `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

const noLetter = "There is no such letter"

func headOf(row *store.Message) LetterHead {
	return LetterHead{ID: row.ID, Kind: row.Event, To: row.Target, Developer: row.DeveloperID, CreatedAt: row.CreatedAt}
}

func (b *Mailbox) list(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	rows, total, err := b.store.ListLetters(ctx, c.Who.Org, c.Query("q"), page)
	if err != nil {
		return nil, err
	}
	answer := letterList{Data: make([]LetterHead, 0, len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		answer.Data = append(answer.Data, headOf(&rows[i]))
	}
	return answer, nil
}

func (b *Mailbox) read(ctx context.Context, c *rest.Call) (any, error) {
	row, err := b.store.ReadLetter(ctx, c.Author(c.Source()), c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noLetter)
	}
	payload, err := b.open.Open(&row)
	if err != nil {
		return nil, fmt.Errorf("opening letter %s: %w", row.ID, err)
	}
	var m letterMessage
	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, fmt.Errorf("reading letter %s: %w", row.ID, err)
	}
	return letterShown{LetterHead: headOf(&row), From: m.From, Subject: m.Subject, Text: m.Text, HTML: m.HTML}, nil
}

func (b *Mailbox) delete(ctx context.Context, c *rest.Call) (any, error) {
	if err := b.store.DeleteLetter(ctx, c.Author(c.Source()), c.Param("id")); err != nil {
		return nil, rest.Missing(err, noLetter)
	}
	return rest.Done("Data deleted", nil), nil
}
