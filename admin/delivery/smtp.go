package delivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/sluicegate/sluice/internal/secret"
)

// A MailServer sends letters by SMTP (RFC 5321).
type MailServer struct {
	Host     string
	Port     int
	TLS      string // starttls: letters go only once the connection is secured (RFC 3207); tls: from the first byte (RFC 8314); none
	User     string // "": no authentication
	Password secret.Value
	Roots    *x509.CertPool // authorities of its certificate; nil: the system's
	From     string         // default sender address
	Timeout  time.Duration  // for one letter
}

// Send implements Sender.
func (s *MailServer) Send(ctx context.Context, d Delivery) Outcome {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	letter, err := s.compose(d)
	if err != nil {
		return Outcome{Result: Never, Error: err.Error()}
	}
	return smtpOutcome(s.hand(ctx, letter))
}

// hand sends a letter to the server.
func (s *MailServer) hand(ctx context.Context, letter *gomail.Msg) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("reaching the server: %w", err)
	}
	err = client.SendWithSMTPClient(session, letter)
	_ = client.CloseWithSMTPClient(session) // the letter is accepted; an error of QUIT does not matter
	return err
}

// compose returns the letter as a MIME message. Its Message-ID is the same in every
// attempt.
func (s *MailServer) compose(d Delivery) (*gomail.Msg, error) {
	var m letterMessage
	if err := json.Unmarshal(d.Payload, &m); err != nil {
		return nil, fmt.Errorf("reading a letter: %w", err)
	}
	from := m.From
	if from == "" {
		from = s.From
	}
	letter := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := letter.FromFormat(m.FromName, from); err != nil {
		return nil, fmt.Errorf("address of the sender: %w", err)
	}
	if err := letter.To(m.To); err != nil {
		return nil, fmt.Errorf("address of the receiver: %w", err)
	}
	letter.SetMessageIDWithValue(d.ID + "@" + s.name())
	letter.SetDateWithValue(d.Created)
	letter.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no answers by machines
	letter.Subject(m.Subject)
	letter.SetBodyString(gomail.TypeTextPlain, m.Text)
	letter.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return letter, nil
}

// name returns the domain of Message-IDs.
func (s *MailServer) name() string {
	if at := strings.LastIndexByte(s.From, '@'); at >= 0 {
		return s.From[at+1:]
	}
	return "localhost"
}

func (s *MailServer) client() (*gomail.Client, error) {
	conf := &tls.Config{ServerName: s.Host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{
		gomail.WithPort(s.Port), gomail.WithTimeout(s.Timeout), gomail.WithTLSConfig(conf), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(s.dialer(conf)), gomail.WithHELO(s.name()),
	}
	switch s.TLS {
	case "tls":
		options = append(options, gomail.WithSSL())
	case "none":
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.User != "" {
		kind := gomail.SMTPAuthAutoDiscover
		if s.TLS != "starttls" {
			// The library does not see that the connection is secured, or the operator
			// declared the network safe.
			kind = gomail.SMTPAuthPlainNoEnc
		}
		options = append(options, gomail.WithSMTPAuth(kind), gomail.WithUsername(s.User), gomail.WithPassword(s.Password.Reveal()))
	}
	client, err := gomail.NewClient(s.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing to send letters: %w", err)
	}
	return client, nil
}

// dialer returns the function that connects. The library bounds connecting only: the
// deadline bounds the connection as a whole.
func (s *MailServer) dialer(conf *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
		var conn net.Conn
		var err error
		if s.TLS == "tls" {
			conn, err = (&tls.Dialer{Config: conf}).DialContext(ctx, network, address)
		} else {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
		}
		if err != nil {
			return nil, err
		}
		if err := conn.SetDeadline(time.Now().Add(s.Timeout)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
}

// smtpOutcome returns the outcome for an error. Only refusals of the letter itself are
// final: a server that refuses the admin is for the operator to repair.
func smtpOutcome(err error) Outcome {
	if err == nil {
		return Outcome{Result: Done}
	}
	o := Outcome{Result: Again, Error: err.Error()}
	refused, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return o
	}
	o.Status = refused.ErrorCode()
	ofLetter := []gomail.SendErrReason{gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose}
	if o.Status >= 500 && slices.Contains(ofLetter, refused.Reason) {
		o.Result = Never
	}
	return o
}
