package classicimport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/declarative"
)

// maxFile bounds one file, in bytes.
const maxFile = 256 << 20

// ErrNothing is returned if a path has no objects of this format.
var ErrNothing = errors.New("no definition, policy or key is found there")

// Find reads a file, or a folder with its subfolders: definitions, files of policies by
// id, policies, lists of these, and keys by hash. Unreadable files are an error.
func Find(path string) ([]Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var all []Source
	if !info.IsDir() {
		all, err = readFile(path)
	} else {
		err = filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
			hidden := strings.HasPrefix(entry.Name(), ".") && name != path
			switch {
			case err != nil:
				return err
			case entry.IsDir() && hidden:
				return filepath.SkipDir
			case entry.IsDir() || hidden || filepath.Ext(name) != ".json" || strings.HasSuffix(name, "-oas.json"):
				return nil
			}
			found, err := readFile(name)
			all = append(all, found...)
			return err
		})
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", path, ErrNothing)
	}
	return all, err
}

func readFile(name string) ([]Source, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("is larger than %d MiB", maxFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return Parse(name, data), nil
}

// Parse detects the objects in a file. Unknown objects count as definitions, so that the
// report names their problems.
func Parse(name string, data []byte) []Source {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) // as some editors write
	base := strings.TrimSuffix(filepath.Base(name), ".json")
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		var all []Source
		for i, item := range list {
			all = append(all, one(fmt.Sprintf("%s[%d]", name, i), fmt.Sprintf("%s-%d", base, i+1), item)...)
		}
		return all
	}
	return one(name, base, data)
}

// one detects the kind of a JSON value.
func one(file, name string, data json.RawMessage) []Source {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return []Source{{declarative.API, name, file, data}}
	}
	switch {
	case members["api_definition"] != nil: // wrapped as by dashboards
		return one(file, name, members["api_definition"])
	case members["apis"] != nil && members["proxy"] == nil:
		return Parse(file, members["apis"])
	case members["Data"] != nil:
		return Parse(file, members["Data"])
	case isAny(members, "proxy", "version_data", "auth_configs"):
		return []Source{{declarative.API, name, file, data}}
	case isAny(members, "apply_policies", "apply_policy_id", "quota_remaining", "basic_auth_data") && isHash(name):
		return []Source{{declarative.Key, name, file, data}}
	case isAny(members, "access_rights", "access_rights_array", "partitions", "quota_max", "rate"):
		return []Source{{declarative.Policy, name, file, data}}
	}
	return mapped(file, name, data, members)
}

func isAny(members map[string]json.RawMessage, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return members[name] != nil })
}

// mapped detects the kind of an object from ids to objects: policies, or keys if all ids
// are hashes.
func mapped(file, name string, data json.RawMessage, members map[string]json.RawMessage) []Source {
	ids := slices.Sorted(maps.Keys(members))
	kind := declarative.Policy
	if len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return !isHash(id) || !hasSession(members[id]) }) {
		kind = declarative.Key
	}
	var all []Source
	for _, id := range ids {
		if len(members[id]) == 0 || members[id][0] != '{' {
			return []Source{{declarative.API, name, file, data}}
		}
		all = append(all, Source{kind, id, fmt.Sprintf("%s[%q]", file, id), members[id]})
	}
	return all
}

// hasSession reports whether an object is a key, and not a policy whose id looks like a
// hash.
func hasSession(data json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(data, &members) == nil && !isAny(members, "partitions", "id", "_id", "name") && len(members) > 0
}
