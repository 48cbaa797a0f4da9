package definition

import (
	"bytes"
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// part returns a member of a JSON object that is kept as it is, or nil.
func part(raw json.RawMessage, name string) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return parts(raw)[name]
}

// parts returns the members of a JSON object that is kept as it is; none when it
// is something else.
func parts(raw json.RawMessage) map[string]json.RawMessage { return object.Members(raw) }

// elements returns the elements of a JSON array that is kept as it is.
func elements(raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if len(raw) > 0 && raw[0] == '[' {
		_ = json.Unmarshal(raw, &all) // valid JSON, as Decode needs it
	}
	return all
}

// isOn reports whether a member of an object is true.
func isOn(raw json.RawMessage, name string) bool { return bytes.Equal(part(raw, name), []byte("true")) }

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

// says reports whether raw holds anything: not null, false, 0 nor an empty
// string, array or object.
func says(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`, "[]", "{}":
		return false
	}
	return true
}
