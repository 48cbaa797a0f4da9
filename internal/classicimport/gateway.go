package classicimport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/sluicegate/sluice/internal/declarative"
)

// A Gateway is the control API of a running gateway.
type Gateway interface {
	// Call makes one call and returns the answer's body.
	Call(ctx context.Context, method, path string, body any) ([]byte, error)
}

// Ask reads the definitions, policies and keys of a running gateway, whose control API is
// below prefix. progress is called for keys, which are read one by one; it may be nil.
func Ask(ctx context.Context, from Gateway, prefix string, progress func(done, total int)) ([]Source, error) {
	var all []Source
	for _, list := range []struct {
		path string
		kind declarative.Kind
	}{{"/apis", declarative.API}, {"/policies", declarative.Policy}} {
		found, err := askList(ctx, from, prefix+list.path, list.kind)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	keys, err := askKeys(ctx, from, prefix+"/keys", progress)
	return append(all, keys...), err
}

func askList(ctx context.Context, from Gateway, path string, kind declarative.Kind) ([]Source, error) {
	answer, err := from.Call(ctx, "GET", path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("reading the answer to GET %s: want a JSON array: %w", path, err)
	}
	var all []Source
	for i, body := range list {
		all = append(all, Source{kind, fmt.Sprintf("%d", i+1), fmt.Sprintf("%s[%d]", path, i), body})
	}
	return all, nil
}

// askKeys reads keys by their hashes. A gateway that stores keys in clear lists them in
// clear; these are refused later.
func askKeys(ctx context.Context, from Gateway, path string, progress func(done, total int)) ([]Source, error) {
	answer, err := from.Call(ctx, "GET", path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	var list struct {
		Keys []string `json:"keys"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("reading the answer to GET %s: %w", path, err)
	}
	var all []Source
	for i, key := range list.Keys {
		body := []byte("{}") // of a key in clear, which is not requested, because its path would be logged
		if isHash(key) {
			if body, err = from.Call(ctx, "GET", path+"/"+url.PathEscape(key)+"?hashed=true", nil); err != nil {
				return nil, fmt.Errorf("asking for key %.12s: %w", key, err)
			}
		}
		all = append(all, Source{declarative.Key, key, path, body})
		if progress != nil {
			progress(i+1, len(list.Keys))
		}
	}
	return all, nil
}
