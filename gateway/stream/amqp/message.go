package amqp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
)

// What a message carries beside its body. Metadata beyond the bounds is left out.
const (
	metaHeader = "svc-meta-" // before the name of a value of metadata
	keyHeader  = "svc-key"

	maxMeta      = 64
	maxMetaBytes = 8 << 10
	maxKey       = 1 << 10
	maxShort     = 255 // of names and ids: the library ends the connection over a longer one
)

// headersOf returns the headers of a message, nil for none, and whether all metadata is
// among them.
func headersOf(meta []stream.Meta, key []byte) (headers amqp.Table, whole bool) {
	if len(meta) == 0 && key == nil {
		return nil, true
	}
	headers, whole = make(amqp.Table, min(len(meta), maxMeta)+2), true
	room := maxMetaBytes
	for i, m := range meta {
		n := len(m.Name) + len(m.Value)
		if i >= maxMeta || n > room || len(metaHeader)+len(m.Name) > maxShort {
			whole = false
			continue
		}
		room -= n
		headers[metaHeader+m.Name] = m.Value
	}
	if key != nil {
		headers[keyHeader] = key
	}
	return headers, whole
}

// idOf returns an id that fits into a property.
func idOf(id string) string {
	if len(id) <= maxShort {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// messageOf returns the message of a delivery.
func messageOf(d *amqp.Delivery) *stream.Message {
	m := &stream.Message{ID: d.MessageId, Body: d.Body, At: time.Now(), Attempt: 1}
	if m.ID == "" {
		m.ID = stream.NewID()
	}
	if n, ok := integer(d.Headers["x-delivery-count"]); ok && n > 0 {
		m.Attempt = int(min(n, 1<<30)) + 1
	} else if d.Redelivered {
		m.Attempt = 2
	}
	switch key := d.Headers[keyHeader].(type) {
	case []byte:
		m.Key = key
	case string:
		m.Key = []byte(key)
	}
	room := maxMetaBytes
	for name, value := range d.Headers {
		name, ours := strings.CutPrefix(name, metaHeader)
		text, ok := text(value)
		if !ours || !ok || len(m.Meta) >= maxMeta || len(name)+len(text) > room {
			continue
		}
		room -= len(name) + len(text)
		m.Meta = append(m.Meta, stream.Meta{Name: strings.ToLower(name), Value: text})
	}
	return m
}

// text returns a header's value if it is a text.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// integer returns a header's value if it is a whole number.
func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case byte:
		return int64(v), true
	case int:
		return int64(v), true
	}
	return 0, false
}
