// Package shown is how the admin gives out what it stores of keys.
package shown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
)

// CutMember takes a member out of an object. What is not an object, or has no
// such member, stays as it is.
func CutMember(body []byte, name string) (rest, value []byte) {
	if !strings.Contains(string(body), `"`+name+`"`) {
		return body, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members[name] == nil {
		return body, nil
	}
	value = members[name]
	delete(members, name)
	rest, err := encode(members)
	if err != nil {
		return body, nil
	}
	return rest, value
}

// KeySession is a session as it is given out, with its rights as map and as
// array, and without a password or secret.
type KeySession struct {
	*definition.Session
	Array []*definition.Access `json:"access_rights_array"`
}

// NewSession returns the form in which a session is given out. session stays as it
// is.
func NewSession(session *definition.Session) *KeySession {
	shown := &KeySession{Session: session.Clone(), Array: []*definition.Access{}}
	shown.Hide()
	for _, id := range slices.Sorted(maps.Keys(shown.AccessRights)) {
		access := shown.AccessRights[id].Clone()
		if access.APIID == "" {
			access.APIID = id
		}
		shown.Array = append(shown.Array, access)
	}
	return shown
}

// MarshalJSON writes the session's own members, known and unknown, and the array.
func (s *KeySession) MarshalJSON() ([]byte, error) {
	own, err := s.Session.MarshalJSON()
	if err != nil {
		return nil, err
	}
	array, err := encode(s.Array)
	if err != nil {
		return nil, err
	}
	return slices.Concat(own[:len(own)-1], []byte(`,"access_rights_array":`), array, []byte{'}'}), nil
}

// Rights returns rights by API: the map, or without one what the array holds. What
// is wrong with the array comes beside it.
func Rights(rights map[string]*definition.Access, list []*definition.Access) (byAPI map[string]*definition.Access, problems []string) {
	if len(rights) > 0 || len(list) == 0 {
		return rights, nil
	}
	byAPI = make(map[string]*definition.Access, len(list))
	for i, access := range list {
		switch {
		case access == nil || access.APIID == "":
			problems = append(problems, fmt.Sprintf("access_rights_array[%d].api_id: must be the id of an API", i))
		case byAPI[access.APIID] != nil:
			problems = append(problems, fmt.Sprintf("access_rights_array[%d].api_id: %q stands twice", i, access.APIID))
		default:
			byAPI[access.APIID] = access
		}
	}
	return byAPI, problems
}

// encode is JSON as people wrote it, without escapes for HTML.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding a session: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
