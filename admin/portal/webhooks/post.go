package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// A posting is a message to be sent to a URL, signed by each of the secrets.
type posting struct {
	url string
	delivery.Delivery
	secrets [][]byte
}

// post makes one attempt to send a message.
func (s *Service) post(ctx context.Context, to *reach, d posting) delivery.Outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(d.Payload))
	if err != nil {
		return delivery.Outcome{Result: delivery.Never, Error: "its URL cannot be read"}
	}
	timestamp := strconv.FormatInt(s.deps.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sluice-webhooks")
	req.Header.Set(webhooksign.IDHeader, d.ID)
	req.Header.Set(webhooksign.TimestampHeader, timestamp)
	if len(d.secrets) > 0 {
		req.Header.Set(webhooksign.SignatureHeader, webhooksign.Sign(d.secrets, d.ID, timestamp, d.Payload))
	}
	resp, err := to.client.Do(req)
	if err != nil {
		return delivery.Outcome{Error: reason(err)}
	}
	defer resp.Body.Close()
	s.drain(resp, cancel)
	return s.outcomeOf(resp)
}

// Bounds of reading an answer, which is only done to reuse the connection.
const (
	maxAnswer   = 4 << 10
	drainWithin = time.Second
)

func (s *Service) drain(resp *http.Response, cancel func()) {
	if resp.ContentLength > maxAnswer {
		return
	}
	late := time.AfterFunc(drainWithin, cancel)
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // after an error the connection is not reused
}

// outcomeOf returns the outcome for an answer.
func (s *Service) outcomeOf(resp *http.Response) delivery.Outcome {
	out := delivery.Outcome{Status: resp.StatusCode}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		out.Result = delivery.Done
		return out
	case code >= 300 && code < 400:
		out.Error = fmt.Sprintf("it answers %d, a redirect, which is not followed", code)
	case code == http.StatusGone:
		out.Result, out.Error = delivery.Never, "it answers 410 Gone"
	default:
		out.Error = strings.TrimSpace(fmt.Sprintf("it answers %d %s", code, http.StatusText(code)))
	}
	out.After = s.retryAfter(resp)
	return out
}

// retryAfter returns the pause in Retry-After: seconds, or a date (RFC 9110, section
// 10.2.3).
func (s *Service) retryAfter(resp *http.Response) time.Duration {
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(s.deps.Now()), 0)
	}
	return 0
}

// reason returns why there was no answer, without details of the network such as
// addresses.
func reason(err error) string {
	if errors.Is(err, dialguard.ErrNever) || errors.Is(err, dialguard.ErrPrivate) {
		return "its address is none that messages may be sent to"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name cannot be resolved"
	}
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not trusted: " + wrong.Err.Error()
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "it does not speak TLS"
	}
	failed, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), isNet && failed.Timeout():
		return "it did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it ended the connection without an answer"
	}
	return "the connection failed"
}
