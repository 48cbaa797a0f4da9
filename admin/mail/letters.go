// Package mail writes the letters of the portal, and sends them by SMTP or keeps
// them in a mailbox of its own.
package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/mail"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/store"
)

// A Configurer knows how an organisation's letters look.
type Configurer interface {
	Configuration(ctx context.Context, org string) (*record.Configuration, error)
}

// A Queue takes what is to be sent, in the transaction of its cause.
type Queue interface {
	Put(ctx context.Context, tx *store.Tx, m delivery.Message) (id string, err error)

	// CanSeal returns why no message with a secret is taken, or nil.
	CanSeal() error
}

// Letters writes letters and queues them. It is safe for concurrent use.
type Letters struct {
	queue  Queue
	config Configurer
	portal string // address of the portal, without a final slash
}

// NewLetters returns Letters whose links lead to the portal at an address such as
// https://developers.example.com/portal.
func NewLetters(queue Queue, config Configurer, portal string) *Letters {
	return &Letters{queue: queue, config: config, portal: strings.TrimRight(portal, "/")}
}

// message is a letter as it is queued.
type message struct {
	FromName string `json:"from_name,omitempty"`
	From     string `json:"from,omitempty"` // "": the server's usual one
	To       string `json:"to"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	HTML     string `json:"html"`
}

// Put writes a letter and queues it as a part of the transaction: it is sent when
// that is committed. A letter that the configuration does not want, or that has no
// address to go to, is not written.
func (l *Letters) Put(ctx context.Context, tx *store.Tx, letter record.Letter) error {
	if letter.To == "" {
		return nil
	}
	config, err := l.config.Configuration(ctx, letter.Org)
	if err != nil {
		return fmt.Errorf("reading how letters look: %w", err)
	}
	text, wanted := copyOf(&config.MailOptions.Copy, letter.Kind)
	if !wanted {
		return nil
	}
	m, err := l.write(letter, text, &config.MailOptions)
	if err != nil {
		return fmt.Errorf("writing a letter: %w", err)
	}
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a letter: %w", err)
	}
	_, err = l.queue.Put(ctx, tx, delivery.Message{
		Org: letter.Org, Kind: delivery.Letter, Target: m.To, Developer: letter.Developer, Event: string(letter.Kind),
		Payload: payload, Secret: letter.Token != "" || letter.Credential != nil && !text.HideTokenData,
	})
	return err
}

// CanHoldTokens returns why no letter with a token can be queued, or nil.
func (l *Letters) CanHoldTokens() error { return l.queue.CanSeal() }

// copyOf returns the text of a letter, the usual one where there is none, and
// whether it is wanted. Letters that the configuration does not know always are.
func copyOf(copies *record.MailCopies, kind record.LetterKind) (text record.MailCopy, wanted bool) {
	switch kind {
	case record.WelcomeLetter:
		text = copies.Welcome
	case record.KeyLetter:
		text = copies.Key
	case record.ResetLetter:
		text = copies.ResetPassword
	default:
		text.Enabled = true
	}
	if text.Subject == "" {
		text.Subject = record.UsualCopy(kind).Subject
	}
	if text.Body == "" {
		text.Body = record.UsualCopy(kind).Body
	}
	return text, text.Enabled
}

// write fills in a letter.
func (l *Letters) write(letter record.Letter, text record.MailCopy, options *record.MailOptions) (*message, error) {
	to, err := address(letter.To)
	if err != nil {
		return nil, err
	}
	m := &message{To: to, FromName: oneLine(options.FromName)}
	if options.FromEmail != "" {
		if m.From, err = address(options.FromEmail); err != nil {
			return nil, fmt.Errorf("mail_options.mail_from_email: %w", err)
		}
	}
	values := l.values(letter, text.HideTokenData)
	m.Subject = oneLine(fill(text.Subject, values))
	parts := []string{fill(text.Body, values)}
	if letter.Credential != nil && !text.HideTokenData && !holds(text.Body, record.HoldKey) {
		parts = append(parts, shownOnce, credential(letter.Credential))
	}
	if letter.Token != "" && !holds(text.Body, record.HoldLink) {
		parts = append(parts, values[record.HoldLink])
	}
	if text.SignOff != "" {
		parts = append(parts, fill(text.SignOff, values))
	}
	m.Text = strings.ReplaceAll(strings.Join(parts, "\n\n"), "\r\n", "\n") + "\n"
	m.HTML = asHTML(m.Text)
	return m, nil
}

// values are what placeholders stand for in a letter.
func (l *Letters) values(letter record.Letter, hide bool) map[string]string {
	values := map[string]string{
		record.HoldEmail: letter.To, record.HoldPortal: l.portal + "/", record.HoldPolicies: strings.Join(letter.Policies, ", "),
		record.HoldReason: letter.Reason, record.HoldEvent: letter.Event,
	}
	if page := pages[letter.Kind]; page != "" && letter.Token != "" {
		values[record.HoldLink] = l.portal + page + url.QueryEscape(letter.Token)
	}
	if c := letter.Credential; c != nil && !hide {
		values[record.HoldKey], values[record.HoldPassword] = c.RawKey, c.Password
	}
	return values
}

// pages are where the links of letters lead, with their token behind.
var pages = map[record.LetterKind]string{
	record.VerifyLetter:  "/verify?token=",
	record.WelcomeLetter: "/verify?token=",
	record.ResetLetter:   "/reset?token=",
}

func credential(c *record.Credential) string {
	if c.Password == "" {
		return "Key: " + c.RawKey
	}
	return "User or client: " + c.RawKey + "\nPassword or secret: " + c.Password
}

// address returns a bare address, which is one and can stand in a header.
func address(text string) (string, error) {
	const most = 254 // RFC 5321, section 4.5.3.1.3
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > most || text != oneLine(text) {
		return "", fmt.Errorf("%.80q is no address such as ann@example.com", text)
	}
	return text, nil
}

// oneLine takes out what could end a header, or hide what follows.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text))
}

// asHTML shows a text as a page: its paragraphs, with links that can be followed.
func asHTML(text string) string {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html><body>\n")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		b.WriteString("<p>")
		for i, line := range strings.Split(paragraph, "\n") {
			if i > 0 {
				b.WriteString("<br>\n")
			}
			b.WriteString(lineAsHTML(line))
		}
		b.WriteString("</p>\n")
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

// lineAsHTML makes a link of a line that is nothing but an address of the web.
func lineAsHTML(line string) string {
	shown := html.EscapeString(line)
	if (strings.HasPrefix(line, "https://") || strings.HasPrefix(line, "http://")) && !strings.ContainsAny(line, " \t") {
		return `<a href="` + shown + `">` + shown + `</a>`
	}
	return shown
}
