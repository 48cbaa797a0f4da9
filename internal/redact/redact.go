// Package redact masks secrets in data that is shown: the audit log, support bundles,
// differences. It has the table of secret members.
package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Masked replaces a secret.
const Masked = "***"

// secretMembers are the members, in lower case, whose content is never shown.
var secretMembers = map[string]bool{
	"password": true, "secret": true, "hmac_string": true, "jwt_secret": true,
	"jwt_data": true, "oauth_keys": true, "auth_headers": true, "header_map": true, "access_key": true,
	"private_key": true, "client_secret": true, "token": true, "sasl_password": true,
	"sso_key": true, "nonce": true, "pwhistory": true,
	// Headers with credentials, wherever a definition sets them.
	"authorization": true, "proxy-authorization": true, "cookie": true,
	"x-api-key": true, "api-key": true, "x-auth-token": true,
}

// JSON returns JSON with secrets masked; nil for nil.
func JSON(body []byte) []byte {
	if body == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return []byte(`"` + Masked + `"`)
	}
	hidden, err := encode(Value(value))
	if err != nil {
		return []byte(`"` + Masked + `"`)
	}
	return hidden
}

// Value masks the secrets in a decoded JSON value in place and returns it.
func Value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if IsSecret(name) && !isEmpty(member) {
				v[name] = Masked
			} else {
				v[name] = Value(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = Value(v[i])
		}
	}
	return value
}

// IsSecret reports whether members or headers of a name are secret.
func IsSecret(name string) bool { return secretMembers[strings.ToLower(name)] }

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
