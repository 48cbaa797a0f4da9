package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/mail"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
)

// A Configurer returns the configuration of an organisation's portal, which has the texts
// of letters.
type Configurer interface {
	Configuration(ctx context.Context, org string) (*model.Configuration, error)
}

// A LetterQueue queues messages in a transaction.
type LetterQueue interface {
	Put(ctx context.Context, tx *store.Tx, m Message) (id string, err error)

	// CanSeal returns the error for every message with a secret, or nil.
	CanSeal() error
}

// Letters writes letters and queues them. It is safe for concurrent use.
type Letters struct {
	queue  LetterQueue
	config Configurer
	portal string // address of the portal, without a final slash
}

// NewLetters returns Letters whose links lead to the portal at an address such as
// https://developers.example.com/portal.
func NewLetters(queue LetterQueue, config Configurer, portal string) *Letters {
	return &Letters{queue: queue, config: config, portal: strings.TrimRight(portal, "/")}
}

// letterMessage is a letter as it is queued.
type letterMessage struct {
	FromName string `json:"from_name,omitempty"`
	From     string `json:"from,omitempty"` // "": the server's usual one
	To       string `json:"to"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	HTML     string `json:"html"`
}

// Put writes a letter and queues it as a part of the transaction: it is sent when
// that is committed. A letter that the configuration does not want, or that has no
// bareAddress to go to, is not written.
func (l *Letters) Put(ctx context.Context, tx *store.Tx, letter model.Letter) error {
	if letter.To == "" {
		return nil
	}
	config, err := l.config.Configuration(ctx, letter.Org)
	if err != nil {
		return fmt.Errorf("reading how letters look: %w", err)
	}
	text, wanted := letterCopy(&config.MailOptions.Copy, letter.Kind)
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
	_, err = l.queue.Put(ctx, tx, Message{
		Org: letter.Org, Kind: Letter, Target: m.To, Developer: letter.Developer, Event: string(letter.Kind),
		Payload: payload, Secret: letter.Token != "" || letter.Link != "" || letter.Credential != nil && !text.HideTokenData,
	})
	return err
}

// CanHoldTokens returns the error for every letter with a token, or nil.
func (l *Letters) CanHoldTokens() error { return l.queue.CanSeal() }

// letterCopy returns the text of a letter, by default the usual one, and whether it is
// wanted. Letters that the configuration does not have are always wanted.
func letterCopy(copies *model.MailCopies, kind model.LetterKind) (text model.MailCopy, wanted bool) {
	switch kind {
	case model.WelcomeLetter:
		text = copies.Welcome
	case model.KeyLetter:
		text = copies.Key
	case model.ResetLetter:
		text = copies.ResetPassword
	default:
		text.Enabled = true
	}
	if text.Subject == "" {
		text.Subject = model.UsualCopy(kind).Subject
	}
	if text.Body == "" {
		text.Body = model.UsualCopy(kind).Body
	}
	return text, text.Enabled
}

// write renders a letter.
func (l *Letters) write(letter model.Letter, text model.MailCopy, options *model.MailOptions) (*letterMessage, error) {
	to, err := bareAddress(letter.To)
	if err != nil {
		return nil, err
	}
	m := &letterMessage{To: to, FromName: oneLine(options.FromName)}
	if options.FromEmail != "" {
		if m.From, err = bareAddress(options.FromEmail); err != nil {
			return nil, fmt.Errorf("mail_options.mail_from_email: %w", err)
		}
	}
	values := l.values(letter, text.HideTokenData)
	m.Subject = oneLine(fillPlaceholders(text.Subject, values))
	parts := []string{fillPlaceholders(text.Body, values)}
	if letter.Credential != nil && !text.HideTokenData && !hasPlaceholder(text.Body, model.HoldKey) {
		parts = append(parts, shownOnce, credentialText(letter.Credential))
	}
	if letter.Token != "" && !hasPlaceholder(text.Body, model.HoldLink) {
		parts = append(parts, values[model.HoldLink])
	}
	if text.SignOff != "" {
		parts = append(parts, fillPlaceholders(text.SignOff, values))
	}
	m.Text = strings.ReplaceAll(strings.Join(parts, "\n\n"), "\r\n", "\n") + "\n"
	m.HTML = asHTML(m.Text)
	return m, nil
}

// values returns the values of the placeholders in a letter.
func (l *Letters) values(letter model.Letter, hide bool) map[string]string {
	values := map[string]string{
		model.HoldEmail: letter.To, model.HoldPortal: l.portal + "/", model.HoldPolicies: strings.Join(letter.Policies, ", "),
		model.HoldReason: letter.Reason, model.HoldEvent: letter.Event, model.HoldLink: letter.Link,
	}
	if page := letterPages[letter.Kind]; page != "" && letter.Token != "" {
		values[model.HoldLink] = l.portal + page + url.QueryEscape(letter.Token)
	}
	if c := letter.Credential; c != nil && !hide {
		values[model.HoldKey], values[model.HoldPassword] = c.RawKey, c.Password
	}
	return values
}

// letterPages are the paths that links of letters lead to, without the token.
var letterPages = map[model.LetterKind]string{
	model.VerifyLetter:  "/verify?token=",
	model.WelcomeLetter: "/verify?token=",
	model.ResetLetter:   "/reset?token=",
}

func credentialText(c *model.Credential) string {
	if c.Password == "" {
		return "Key: " + c.RawKey
	}
	return "User or client: " + c.RawKey + "\nPassword or secret: " + c.Password
}

// bareAddress checks that a text is a bare address that can stand in a header.
func bareAddress(text string) (string, error) {
	const most = 254 // RFC 5321, section 4.5.3.1.3
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > most || text != oneLine(text) {
		return "", fmt.Errorf("%.80q is no address such as ann@example.com", text)
	}
	return text, nil
}

// oneLine replaces characters that could end a header or hide what follows.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text))
}

// asHTML renders a text as HTML, with paragraphs and links.
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

// lineAsHTML makes a link of a line that is a URL.
func lineAsHTML(line string) string {
	shown := html.EscapeString(line)
	if (strings.HasPrefix(line, "https://") || strings.HasPrefix(line, "http://")) && !strings.ContainsAny(line, " \t") {
		return `<a href="` + shown + `">` + shown + `</a>`
	}
	return shown
}
