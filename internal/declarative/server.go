package declarative

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
)

// A Server is a client of an admin.
type Server interface {
	// Call makes one call and returns the response body.
	Call(ctx context.Context, method, path string, body any) ([]byte, error)
}

// Fetch returns the objects of a server at one revision, 0 if nothing was ever created.
// Keys do not belong to a revision and are only fetched if requested.
func Fetch(ctx context.Context, from Server, keys bool) (set *Set, revision int64, err error) {
	var list struct {
		Revisions []struct {
			Revision int64 `json:"revision"`
		} `json:"revisions"`
	}
	if err := get(ctx, from, "/api/config/revisions?page_size=1", &list); err != nil {
		return nil, 0, err
	}
	set = new(Set)
	if len(list.Revisions) > 0 {
		revision = list.Revisions[0].Revision
		if err := set.fetchConfiguration(ctx, from, revision); err != nil {
			return nil, 0, err
		}
	}
	if keys {
		err = set.fetchKeys(ctx, from)
	}
	return set, revision, err
}

func get(ctx context.Context, from Server, path string, into any) error {
	answer, err := from.Call(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the answer to GET %s: %w", path, err)
	}
	return nil
}

func (s *Set) fetchConfiguration(ctx context.Context, from Server, revision int64) error {
	var view struct {
		APIs     []json.RawMessage `json:"apis"`
		Policies []json.RawMessage `json:"policies"`
	}
	if err := get(ctx, from, fmt.Sprintf("/api/config/revisions/%d", revision), &view); err != nil {
		return err
	}
	var objects []*Object
	for kind, bodies := range map[Kind][]json.RawMessage{API: view.APIs, Policy: view.Policies} {
		for _, body := range bodies {
			var named struct {
				API    string `json:"api_id"`
				Policy string `json:"id"`
			}
			if err := json.Unmarshal(body, &named); err != nil {
				return fmt.Errorf("reading an object of revision %d: %w", revision, err)
			}
			one := &Object{Kind: kind, Name: named.API, Labels: labelsOf(body), Body: body}
			if kind == Policy {
				one.Name = named.Policy
			}
			objects = append(objects, one)
		}
	}
	return s.Add(objects...)
}

func (s *Set) fetchKeys(ctx context.Context, from Server) error {
	for page := int64(1); ; page++ {
		var view struct {
			Keys  []storedKey `json:"keys"`
			Pages int64       `json:"pages"`
		}
		if err := get(ctx, from, fmt.Sprintf("/api/keys/detailed?p=%d&page_size=500", page), &view); err != nil {
			return err
		}
		for _, k := range view.Keys {
			one, err := k.object()
			if err != nil {
				return fmt.Errorf("reading the session of key %.12s: %w", k.Hash, err)
			}
			if one == nil {
				continue
			}
			s.Objects = append(s.Objects, one)
		}
		if page >= view.Pages {
			return s.Add()
		}
	}
}

// A storedKey is a key in the admin's list.
type storedKey struct {
	Hash    string          `json:"key_hash"`
	Session json.RawMessage `json:"data"`
}

// object returns the key, or nil for a former key in its grace period.
func (k *storedKey) object() (*Object, error) {
	var named struct {
		Alias     string `json:"alias"`
		Successor string `json:"successor_of"`
	}
	if err := json.Unmarshal(k.Session, &named); err != nil || named.Successor != "" {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(k.Session, &members); err != nil {
		return nil, err
	}
	delete(members, "access_rights_array") // a copy of the access rights
	body, err := encode(members)
	return &Object{Kind: Key, Name: cmp.Or(named.Alias, k.Hash), Hash: k.Hash, Body: body}, err
}
