package store

import (
	"bytes"
	"encoding/json"
	"strings"
)

// masked stands where a secret stood.
const masked = "***"

// secretMembers are the members, in lower case, whose content never reaches the
// audit log, whatever they hold.
var secretMembers = map[string]bool{
	"password": true, "secret": true, "hmac_string": true, "jwt_secret": true,
	"jwt_data": true, "oauth_keys": true, "auth_headers": true, "header_map": true, "access_key": true,
	"private_key": true, "client_secret": true, "token": true, "sasl_password": true,
	"sso_key": true, "nonce": true, "pwhistory": true,
	// Headers that carry credentials, wherever a definition sets some.
	"authorization": true, "proxy-authorization": true, "cookie": true,
	"x-api-key": true, "api-key": true, "x-auth-token": true,
}

// mask returns JSON with *** in place of secrets; nil stays nil.
func mask(body []byte) []byte {
	if body == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return []byte(`"` + masked + `"`)
	}
	hidden, err := encode(hide(value))
	if err != nil {
		return []byte(`"` + masked + `"`)
	}
	return hidden
}

func hide(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if secretMembers[strings.ToLower(name)] && !isEmpty(member) {
				v[name] = masked
			} else {
				v[name] = hide(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i])
		}
	}
	return value
}

// isEmpty tells whether there is nothing to hide.
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
