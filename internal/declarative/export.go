package declarative

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Document returns an object in file form, as JSON with its members in reading order.
// Secrets are written as their references, or as variables whose names it returns; with
// values they are written in clear.
func (o *Object) Document(values bool) (text []byte, named []string, err error) {
	spec, named, err := o.spec(values)
	if err != nil {
		return nil, nil, fmt.Errorf("writing %s: %w", o.place(), err)
	}
	metadata := struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels,omitempty"`
	}{o.Name, o.Labels}
	text, err = encode(struct {
		Kind     Kind            `json:"kind"`
		Metadata any             `json:"metadata"`
		Hash     string          `json:"hash,omitempty"`
		Spec     json.RawMessage `json:"spec"`
	}{o.Kind, metadata, o.Hash, spec})
	return text, named, err
}

// spec is the body without metadata, defaults and members that a server maintains, in the
// order of its members.
func (o *Object) spec(values bool) (spec []byte, named []string, err error) {
	typed, err := o.typed()
	if err != nil {
		return nil, nil, err
	}
	text, err := encode(typed)
	if err != nil {
		return nil, nil, err
	}
	tree, err := canonicalText(text)
	if err != nil {
		return nil, nil, err
	}
	members := tree.(map[string]any)
	if values {
		delete(members, refsMember)
	} else {
		named = o.conceal(members)
	}
	delete(members, labelsMember)
	delete(members, map[Kind]string{API: "api_id", Policy: "id", Key: "alias"}[o.Kind])
	var b bytes.Buffer
	err = follow(&b, text, tree)
	return b.Bytes(), named, err
}

// follow writes the part of a value that is also in tree, in the order of the value.
func follow(b *bytes.Buffer, text json.RawMessage, tree any) error {
	switch tree := tree.(type) {
	case standIn:
		ref, err := encode(tree.reference)
		b.Write(ref)
		return err
	case map[string]any:
		return followMembers(b, text, tree)
	case []any:
		var items []json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil {
			return err
		}
		b.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := follow(b, item, tree[i]); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	b.Write(text)
	return nil
}

func followMembers(b *bytes.Buffer, text json.RawMessage, tree map[string]any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	b.WriteByte('{')
	first := true
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		name, _ := token.(string)
		kept, ok := tree[name]
		if !ok {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		quoted, err := encode(name)
		if err != nil {
			return err
		}
		b.Write(append(quoted, ':'))
		if err := follow(b, value, kept); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// Classic returns the definition, policy or session alone, as gateways read it
// from a file.
func (o *Object) Classic() ([]byte, error) {
	typed, err := o.typed()
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", o.place(), err)
	}
	return encode(typed)
}

// FileName returns the file name of an object, without the extension. It is unique, in
// characters that every file system supports.
func (o *Object) FileName() string {
	folder := map[Kind]string{API: "apis", Policy: "policies", Key: "keys"}[o.Kind]
	name := o.Name
	if o.Hash != "" {
		name = o.Hash
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return filepath.Join(folder, b.String())
}

// WriteClassic writes APIs and policies for a gateway on files: definitions below apps,
// and policies.json.
func (s *Set) WriteClassic(dir string) error {
	apps := filepath.Join(dir, "apps")
	if err := os.MkdirAll(apps, 0o755); err != nil {
		return err
	}
	policies := make(map[string]json.RawMessage)
	for _, o := range s.Objects {
		body, err := o.Classic()
		if err != nil {
			return err
		}
		switch o.Kind {
		case API:
			err = writeJSON(filepath.Join(apps, filepath.Base(o.FileName())+".json"), body)
		case Policy:
			policies[o.Name] = body
		}
		if err != nil {
			return err
		}
	}
	all, err := encode(policies)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "policies.json"), all)
}

func writeJSON(name string, data []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	return os.WriteFile(name, b.Bytes(), 0o600) // it may hold secrets
}
