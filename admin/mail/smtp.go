package mail

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

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/internal/secret"
)

// A Server sends letters by SMTP (RFC 5321).
type Server struct {
	Host     string
	Port     int
	TLS      string // starttls: letters go only once the connection is secured (RFC 3207); tls: from the first byte (RFC 8314); none
	User     string // "": nobody logs in
	Password secret.Value
	Roots    *x509.CertPool // authorities of its certificate; nil: the system's
	From     string         // of letters that do not say; an address
	Timeout  time.Duration  // for one letter
}

// Send implements delivery.Sender.
func (s *Server) Send(ctx context.Context, d delivery.Delivery) delivery.Outcome {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	letter, err := s.compose(d)
	if err != nil {
		return delivery.Outcome{Result: delivery.Never, Error: err.Error()}
	}
	return outcome(s.hand(ctx, letter))
}

// hand gives a letter to the server.
func (s *Server) hand(ctx context.Context, letter *gomail.Msg) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("reaching the server: %w", err)
	}
	err = client.SendWithSMTPClient(session, letter)
	_ = client.CloseWithSMTPClient(session) // once it is taken, how the server says goodbye does not matter
	return err
}

// compose writes the letter as the server takes it. A letter that is sent twice
// has one id.
func (s *Server) compose(d delivery.Delivery) (*gomail.Msg, error) {
	var m message
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

// name is what stands behind @ in the ids of letters.
func (s *Server) name() string {
	if at := strings.LastIndexByte(s.From, '@'); at >= 0 {
		return s.From[at+1:]
	}
	return "localhost"
}

func (s *Server) client() (*gomail.Client, error) {
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
			// The library does not see that our connection is secured, or the operator
			// said that the way there is safe.
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

// dialer returns what connects. The library bounds the connecting only, so that
// the connection itself ends with the time for the letter.
func (s *Server) dialer(conf *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
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

// outcome tells what becomes of a letter. Only what the server says of the letter
// itself is final: that it does not let us in is for the operator to mend.
func outcome(err error) delivery.Outcome {
	if err == nil {
		return delivery.Outcome{Result: delivery.Done}
	}
	o := delivery.Outcome{Result: delivery.Again, Error: err.Error()}
	refused, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return o
	}
	o.Status = refused.ErrorCode()
	ofLetter := []gomail.SendErrReason{gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose}
	if o.Status >= 500 && slices.Contains(ofLetter, refused.Reason) {
		o.Result = delivery.Never
	}
	return o
}
