package admin

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// cutMember takes a member out of an object. What is not an object, or has no
// such member, stays as it is.
func cutMember(body []byte, name string) (others, value []byte) {
	if !strings.Contains(string(body), `"`+name+`"`) {
		return body, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members[name] == nil {
		return body, nil
	}
	value = members[name]
	delete(members, name)
	others, err := rest.Encode(members)
	if err != nil {
		return body, nil
	}
	return others, value
}

// keySession is a session as it is given out, with its rights as map and as
// array, and without a password or secret.
type keySession struct {
	*definition.Session
	// Access rights as an array, by id of the API; the same as access_rights.
	Array []*definition.Access `json:"access_rights_array"`
}

// newKeySession returns the form in which a session is given out. session stays as it
// is.
func newKeySession(session *definition.Session) *keySession {
	shown := &keySession{Session: session.Clone(), Array: []*definition.Access{}}
	keys.Hide(shown.Session)
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
func (s *keySession) MarshalJSON() ([]byte, error) {
	own, err := s.Session.MarshalJSON()
	if err != nil {
		return nil, err
	}
	array, err := rest.Encode(s.Array)
	if err != nil {
		return nil, err
	}
	return slices.Concat(own[:len(own)-1], []byte(`,"access_rights_array":`), array, []byte{'}'}), nil
}
