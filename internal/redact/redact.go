// Package redact masks secrets in data that is shown: answers to callers below editor,
// the audit log, support bundles, differences. It has the table of what is secret.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Masked replaces a secret.
const Masked = "***"

// JSON returns JSON with secrets masked, its members in the same order; nil for nil.
func JSON(body []byte) []byte {
	if body == nil {
		return nil
	}
	m := masking{dec: json.NewDecoder(bytes.NewReader(body))}
	m.dec.UseNumber()
	if m.value() != nil {
		return []byte(`"` + Masked + `"`)
	}
	return m.out.Bytes()
}

// Value masks the secrets in a decoded JSON value in place and returns it.
func Value(value any) any { return At(nil, value) }

// At is Value for a value at a path, such as one that differs. Elements of arrays are
// "[]" in paths.
func At(path []string, value any) any {
	for i := range path { // it may be a part of a secret
		switch kindOf(path[:i+1]) {
		case open:
		case named:
			if slices.ContainsFunc(path[i+1:], isSuspicious) {
				return blank(value)
			}
		default:
			return hide(path[:i+1], value)
		}
	}
	return maskValue(path, value)
}

func maskValue(path []string, value any) any {
	if kindOf(path) != open {
		value = hide(path, value)
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = maskValue(append(path, name), member)
		}
	case []any:
		for i := range v {
			v[i] = maskValue(append(path, element), v[i])
		}
	}
	return value
}

// hide masks a value that the table has, at its path.
func hide(path []string, value any) any {
	how, name := kindOf(path), path[len(path)-1]
	text, isText := value.(string)
	switch how {
	case whole:
		if isEmpty(value) || isText && IsPublic(name, text) {
			return value
		}
		if headers, ok := value.(map[string]any); ok && strings.EqualFold(name, "header_map") {
			return blank(headers) // the names are no secret
		}
		return Masked
	case named:
		return careful(value)
	case fact:
		if f, ok := value.(map[string]any); ok && isHeaderFact(f) {
			f["value"] = Masked
		}
		return value
	}
	if !isText {
		return value
	}
	switch how {
	case address:
		return Address(text)
	case hostOnly:
		return host(text)
	case line:
		if name, _, ok := strings.Cut(text, ":"); ok {
			return name + ": " + Masked
		}
	}
	return value
}

// isHeaderFact reports whether a fact of an explanation is the value of a header.
func isHeaderFact(fact map[string]any) bool {
	rule, _ := fact["rule"].(string)
	return strings.HasPrefix(rule, "header ") && fact["value"] != "removed"
}

// A masking copies JSON from a decoder and masks the secrets in it.
type masking struct {
	dec  *json.Decoder
	out  bytes.Buffer
	path []string
}

// value copies the next value.
func (m *masking) value() error {
	if kindOf(m.path) != open {
		var value any
		if err := m.dec.Decode(&value); err != nil {
			return err
		}
		return m.write(maskValue(m.path, value))
	}
	token, err := m.dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return m.members()
	case json.Delim('['):
		return m.elements()
	}
	return m.write(token)
}

func (m *masking) members() error {
	m.out.WriteByte('{')
	for first := true; m.dec.More(); first = false {
		token, err := m.dec.Token()
		if err != nil {
			return err
		}
		if !first {
			m.out.WriteByte(',')
		}
		if err := m.write(token); err != nil {
			return err
		}
		m.out.WriteByte(':')
		name, _ := token.(string)
		m.path = append(m.path, name)
		if err := m.value(); err != nil {
			return err
		}
		m.path = m.path[:len(m.path)-1]
	}
	m.out.WriteByte('}')
	_, err := m.dec.Token()
	return err
}

func (m *masking) elements() error {
	m.out.WriteByte('[')
	m.path = append(m.path, element)
	for first := true; m.dec.More(); first = false {
		if !first {
			m.out.WriteByte(',')
		}
		if err := m.value(); err != nil {
			return err
		}
	}
	m.path = m.path[:len(m.path)-1]
	m.out.WriteByte(']')
	_, err := m.dec.Token()
	return err
}

func (m *masking) write(value any) error {
	switch v := value.(type) {
	case nil:
		m.out.WriteString("null")
		return nil
	case bool:
		m.out.WriteString(strconv.FormatBool(v))
		return nil
	case json.Number:
		m.out.WriteString(v.String())
		return nil
	}
	text, err := encode(value)
	m.out.Write(text)
	return err
}

// isEmpty reports whether a value has nothing to mask.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil, bool:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// suspicious are parts of member names, in lower case, whose content is not given to
// third parties.
var suspicious = []string{"secret", "password", "passwd", "token", "credential", "private", "api_key", "apikey", "api-key", "authorization", "cookie", "jwt_source", "header", "meta_data", "config_data", "signature", "template", "body"}

// ForOthers returns JSON for third parties, with secrets and possible secrets masked,
// such as the values of all headers that a definition sets, and the user, password and
// query of URLs. Anything but JSON is masked completely.
func ForOthers(body []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return []byte(`"` + Masked + `"`)
	}
	text, err := encode(careful(Value(value)))
	if err != nil {
		return []byte(`"` + Masked + `"`)
	}
	return text
}

func careful(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if isSuspicious(name) {
				v[name] = blank(member)
			} else {
				v[name] = careful(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = careful(v[i])
		}
	case string:
		return Address(v)
	}
	return value
}

func isSuspicious(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(suspicious, func(part string) bool { return strings.Contains(lower, part) })
}

// blank masks every text of a value and keeps its structure.
func blank(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = blank(member)
		}
	case []any:
		for i := range v {
			v[i] = blank(v[i])
		}
	case string:
		if v != "" {
			return Masked
		}
	}
	return value
}

// host returns a text; if it is a URL, everything but its host is masked.
func host(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, " \t\n{") {
		return text
	}
	name, path, _ := strings.Cut(rest, "/")
	name, query, _ := strings.Cut(name, "?")
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name = Masked + name[at:]
	}
	if path != "" || query != "" {
		name += "/" + Masked
	}
	return scheme + "://" + name
}

// Address returns a text; if it is a URL, the user, the password and the query are
// masked.
func Address(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, " \t\n{") {
		return text
	}
	if before, _, ok := strings.Cut(rest, "?"); ok {
		rest = before + "?" + Masked
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = Masked + host[at:]
	}
	if strings.Contains(rest, "/") {
		host += "/" + path
	}
	return scheme + "://" + host
}
