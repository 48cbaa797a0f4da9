package portalhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/httpcall"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// maxID bounds the header webhook-id, in bytes.
const maxID = 256

// An event is the body of a message to the portal.
type event struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	API       string          `json:"api_id"`
	Stream    string          `json:"stream"`
	Data      json.RawMessage `json:"data"`

	// Encoding is base64 if Data is the text of bytes that are neither JSON nor text.
	Encoding string `json:"data_encoding,omitempty"`
}

// post makes one attempt. The error has a class.
func (o *Output) post(m *stream.Message) error {
	body, err := o.body(m)
	if err != nil {
		return stream.Failf(stream.Permanent, "%w", err)
	}
	call, err := o.plan.Prepare(m.Doc, func() ([]byte, error) { return body, nil })
	if err != nil {
		return stream.Failf(stream.Permanent, "%w", err)
	}
	id, timestamp := idOf(m.ID), strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{
		webhooksign.IDHeader: id, webhooksign.TimestampHeader: timestamp,
		webhooksign.SignatureHeader: webhooksign.Sign([][]byte{o.key}, id, timestamp, body),
	} {
		call.Header.Set(name, value)
	}
	// The portal takes an id once, so that net/http may repeat a request on a connection that
	// has just been closed. The header itself is not sent.
	call.Header["Idempotency-Key"] = []string{}
	o.site.State.Attempts.Add(1)
	failure := call.Tell(o.ctx)
	switch {
	case failure == nil:
		o.site.State.Enter(stream.Running)
		return nil
	case o.ctx.Err() != nil:
		return stream.ErrClosed
	}
	o.site.State.Enter(phaseAfter(failure))
	return failure
}

// phaseAfter returns what the output does after a failure. Redirects and refusals that are
// not about one message need a change of the configuration.
func phaseAfter(f *stream.Failure) stream.Phase {
	answer, ok := errors.AsType[*httpcall.StatusError](f)
	switch {
	case ok && (answer.Status/100 == 3 || answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden ||
		answer.Status == http.StatusNotFound || answer.Status == http.StatusMethodNotAllowed):
		return stream.Failing
	case ok && f.Class == stream.Permanent:
		return stream.Running
	case httpcall.Mends(f):
		return stream.Reconnecting
	}
	return stream.Failing
}

// idOf returns the id of a message as a header: as it is, or a hash of it if it is too long
// or has other characters than those of ASCII that can be seen.
func idOf(id string) string {
	if id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return id
	}
	hash := sha256.Sum256([]byte(id))
	return "sha256-" + hex.EncodeToString(hash[:])
}

// body returns the body for a message.
func (o *Output) body(m *stream.Message) ([]byte, error) {
	data := m.Body
	if o.data != nil {
		text, err := o.data.Text(m.Doc)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		data = []byte(text)
	}
	e := event{Type: o.config.EventType, Timestamp: m.At.UTC().Format(time.RFC3339Nano), API: o.site.API, Stream: o.site.Stream}
	var err error
	switch {
	case !utf8.Valid(data):
		e.Encoding = "base64"
		e.Data, err = encode(base64.StdEncoding.EncodeToString(data))
	case json.Valid(data):
		e.Data = data
	default:
		e.Data, err = encode(string(data))
	}
	if err != nil {
		return nil, err
	}
	return encode(&e)
}

// encode returns a value as JSON, without escapes for HTML.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("writing the message: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
