package mapping

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// A Doc is a body with metadata. A pipeline decodes the body at the first step that needs
// it, and encodes it when Bytes is called. Goroutines may share a doc that none of them
// changes.
type Doc struct {
	mu      sync.Mutex // reading decodes and encodes
	message *service.Message
}

// NewDoc returns a doc of a body, which is not written to, without metadata.
func NewDoc(body []byte) *Doc { return &Doc{message: service.NewMessage(body)} }

// Join returns a doc whose body is the array of the bodies, with the metadata of the first.
func Join(docs []*Doc) (*Doc, error) {
	values := make([]any, len(docs))
	for i, d := range docs {
		value, err := d.value()
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	joined := NewDoc(nil)
	if len(docs) > 0 {
		joined = docs[0].Copy()
	}
	joined.message.SetStructured(values)
	return joined, nil
}

// Bytes returns the body, which is not to be written to.
func (d *Doc) Bytes() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, err := d.message.AsBytes()
	if err == nil && len(body) == 0 && d.message.HasStructured() {
		err = errors.New("the document has a value that JSON cannot express, such as infinity")
	}
	return body, err
}

// Size returns the length of the body. If that has not been encoded yet, it returns what
// the encoding takes at least; it stops counting above limit.
func (d *Doc) Size(limit int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.message.HasBytes() || !d.message.HasStructured() {
		body, _ := d.message.AsBytes()
		return len(body)
	}
	value, _ := d.message.AsStructured()
	return encodedSize(value, limit)
}

func encodedSize(value any, limit int) int {
	n := 0
	switch v := value.(type) {
	case string:
		n = len(v) + 2
	case []byte:
		n = (len(v)+2)/3*4 + 2
	case json.Number:
		n = len(v)
	case bool, nil:
		n = 4
	case map[string]any:
		n = 2 - min(len(v), 1) // each value is followed by a comma or the end
		for name, one := range v {
			if n > limit {
				break
			}
			n += len(name) + 4 + encodedSize(one, limit-n)
		}
	case []any:
		n = 2 - min(len(v), 1)
		for _, one := range v {
			if n > limit {
				break
			}
			n += 1 + encodedSize(one, limit-n)
		}
	default:
		n = 1
	}
	return n
}

// SetBody sets the body.
func (d *Doc) SetBody(body []byte) { d.message.SetBytes(body) }

// SetMeta sets a metadata value.
func (d *Doc) SetMeta(name, value string) { d.message.MetaSet(name, value) }

// Meta returns a metadata value, "" for none.
func (d *Doc) Meta(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	value, _ := d.message.MetaGet(name)
	return value
}

// EachMeta calls do for the metadata, in no order. do does not use the doc.
func (d *Doc) EachMeta(do func(name, value string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.message.MetaWalk(func(name, value string) error { do(name, value); return nil })
}

// Copy returns a doc that can be changed without changing d.
func (d *Doc) Copy() *Doc {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Doc{message: d.message.Copy()}
}

// Empty returns a copy without the body.
func (d *Doc) Empty() *Doc {
	empty := d.Copy()
	empty.message.SetBytes(nil)
	return empty
}

// Items returns a doc, with the metadata of d, for each item of the array at a path such
// as order.lines; "" is the body itself. An item of more than most is an error.
func (d *Doc) Items(path string, most int) ([]*Doc, error) {
	value, err := d.value()
	if err != nil {
		return nil, err
	}
	if value, err = at(value, path); err != nil {
		return nil, err
	}
	items, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an array", named(path))
	}
	if len(items) > most {
		return nil, fmt.Errorf("%s has %d items, more than %d", named(path), len(items), most)
	}
	docs := make([]*Doc, len(items))
	for i, item := range items {
		docs[i] = d.Copy()
		docs[i].message.SetStructured(item)
	}
	return docs, nil
}

// Decode fails if the body is not a JSON document.
func (d *Doc) Decode() error {
	_, err := d.value()
	return err
}

// value returns the decoded body, which is not to be changed.
func (d *Doc) value() (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	value, err := d.message.AsStructured()
	if err != nil {
		return nil, errors.New("the message is not a JSON document")
	}
	return value, nil
}

func at(value any, path string) (any, error) {
	if path == "" {
		return value, nil
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("%s does not exist", path)
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("%s does not exist", path)
		}
	}
	return value, nil
}

func named(path string) string {
	if path == "" {
		return "the message"
	}
	return path
}
