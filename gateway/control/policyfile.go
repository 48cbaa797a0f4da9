package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sluicegate/sluice/internal/definition"
)

// maxPolicyFile bounds the policies file, in bytes: a gateway reads no larger one.
const maxPolicyFile = 64 << 20

// SavePolicy implements Definitions.
func (f *Files) SavePolicy(_ context.Context, p *definition.Policy, update bool) error {
	entry, err := encode(p)
	if err != nil {
		return broken("The policy could not be encoded", err)
	}
	return f.changePolicies(func(all map[string]json.RawMessage) error {
		if _, there := all[p.Key()]; update && !there {
			return ErrNotFound
		}
		all[p.Key()] = entry
		return nil
	})
}

// DeletePolicy implements Definitions.
func (f *Files) DeletePolicy(_ context.Context, id string) error {
	return f.changePolicies(func(all map[string]json.RawMessage) error {
		if _, there := all[id]; !there {
			return ErrNotFound
		}
		delete(all, id)
		return nil
	})
}

// changePolicies replaces the policies file. Other policies stay as written, invalid
// ones included.
func (f *Files) changePolicies(change func(map[string]json.RawMessage) error) error {
	if f.opts.PoliciesFile == "" {
		return broken("There is no file for policies: set gateway.policies_file", nil)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := readPolicies(f.opts.PoliciesFile)
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	data, err := indented(all)
	if err != nil {
		return broken("The policies could not be encoded", err)
	}
	if len(data) > maxPolicyFile {
		return broken(fmt.Sprintf("The policies file would be larger than %d bytes", maxPolicyFile), nil)
	}
	if err := replaceFile(f.opts.PoliciesFile, data); err != nil {
		return unwritten(err)
	}
	return nil
}

// readPolicies fails if the file cannot be parsed, since writing it would lose its
// content.
func readPolicies(file string) (map[string]json.RawMessage, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return make(map[string]json.RawMessage), nil
	}
	if err != nil {
		return nil, unread(err)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if len(data) == 0 {
		return make(map[string]json.RawMessage), nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil || all == nil {
		if err == nil {
			err = errors.New("it holds null")
		}
		return nil, broken("The policies file must be a JSON object from policy id to policy; correct it first: "+err.Error(), err)
	}
	return all, nil
}
