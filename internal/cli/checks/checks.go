// Package checks reads API definitions and policies from files as a gateway does,
// and gathers what is wrong with them.
package checks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/desired"
	"github.com/sluicegate/sluice/internal/nearest"
	"github.com/sluicegate/sluice/internal/unknown"
)

// The largest files that a gateway reads, in bytes.
const (
	maxAPIFile      = 4 << 20
	maxPoliciesFile = 256 << 20
)

// Checks reads files one after the other and gathers what is wrong. Make one with
// New.
type Checks struct {
	Strict   bool      // also report members that this release does not know
	Files    int       // that were read
	Applied  int       // of them, those that apply takes
	Findings []Finding // in the order in which they were met

	lookup desired.Lookup    // of variables that files refer to
	apis   map[string]string // api_id to the file that defines it
	paths  map[string]string // domain and listen path to the file that claims them
}

// A Finding is one problem of one file.
type Finding struct {
	File, Path, Message string
	Unknown             bool // a member that is not known: no reason to refuse the file
}

// New returns checks of nothing yet.
func New(lookup desired.Lookup) *Checks {
	return &Checks{lookup: lookup, apis: make(map[string]string), paths: make(map[string]string)}
}

func (v *Checks) add(file, path, format string, args ...any) {
	v.Findings = append(v.Findings, Finding{File: file, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Count returns how many findings refuse something, and how many are of unknown
// members.
func (v *Checks) Count() (refused, unknown int) {
	for _, f := range v.Findings {
		if f.Unknown {
			unknown++
		} else {
			refused++
		}
	}
	return refused, unknown
}

// Path checks a file or a folder. The error is of one that cannot be read at
// all, such as a name that was mistyped.
func (v *Checks) Path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, bareCause(err))
	}
	if !info.IsDir() {
		v.file(path, false)
		return nil
	}
	names, err := definitionFiles(path)
	if err != nil {
		return fmt.Errorf("reading folder %s: %w", path, bareCause(err))
	}
	if len(names) == 0 {
		v.add(path, "", "no API definitions: the folder has no file *.json, *.yaml or *.yml")
	}
	for _, name := range names {
		v.file(name, true)
	}
	return nil
}

// definitionFiles lists the files of a folder that a gateway takes for API
// definitions, and those that apply takes; a companion document <id>-oas.json is
// none.
func definitionFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		known := slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(name))
		if e.IsDir() || !known || strings.HasSuffix(name, "-oas.json") || strings.HasPrefix(name, ".") {
			continue
		}
		files = append(files, filepath.Join(dir, name))
	}
	return files, nil
}

func (v *Checks) file(path string, inFolder bool) {
	v.Files++
	data, err := readBounded(path, maxPoliciesFile)
	if err != nil {
		v.add(path, "", "%v", bareCause(err))
		return
	}
	if inFolder && isYAML(path) && !kindLine.Match(data) { // a configuration, perhaps
		v.Files--
		return
	}
	if isDocuments(path, data) {
		v.Applied++
		_, wrong := desired.Parse(path, data, v.lookup)
		for _, one := range wrong {
			v.add(path, "", "%s", strings.TrimPrefix(strings.TrimPrefix(one, path), ": "))
		}
		return
	}
	if !inFolder && isPolicies(data) {
		v.policies(path, data)
		return
	}
	if len(data) > maxAPIFile {
		v.add(path, "", "is larger than %d MiB, the most for one API definition", maxAPIFile>>20)
		return
	}
	v.api(path, data)
}

// api checks one definition, and that no other file claims the same.
func (v *Checks) api(path string, data []byte) {
	api, err := definition.ParseAPI(data)
	v.problems(path, err)
	if api == nil {
		return
	}
	v.unknownBelow(path, "", api, data)
	for _, doubt := range api.Doubts() {
		v.add(path, doubt.Path, "%s", doubt.Message)
	}
	if err != nil {
		return
	}
	v.graphQL(path, api)
	id := api.ID
	if id == "" {
		id = strings.TrimSuffix(filepath.Base(path), ".json")
	}
	v.claim(v.apis, id, path, "api_id", fmt.Sprintf("%q is defined in %%s too; give one of them another", id))
	if api.Internal || api.Active != nil && !*api.Active { // has no route
		return
	}
	place := strings.ToLower(api.Domain) + strings.TrimSuffix(api.Proxy.ListenPath, "/") + "/"
	v.claim(v.paths, place, path, "proxy.listen_path", fmt.Sprintf("%q is claimed by %%s too; only one of them would be served", api.Proxy.ListenPath))
}

// unknownBelow notes the members of an object that this release keeps but does
// not know.
func (v *Checks) unknownBelow(file, path string, object any, raw json.RawMessage) {
	if !v.Strict {
		return
	}
	for _, m := range unknown.Members(object, raw, path) {
		message := "is not known to this release and has no effect"
		if near := nearest.To(m.Name, m.Known); near != "" {
			message += "; did you mean " + near + "?"
		}
		v.Findings = append(v.Findings, Finding{File: file, Path: m.Path, Message: message, Unknown: true})
	}
}

// claim notes that a file has taken something that only one file may have.
func (v *Checks) claim(taken map[string]string, what, file, path, message string) {
	if first, ok := taken[what]; ok && first != file {
		v.add(file, path, message, first)
		return
	}
	taken[what] = file
}

func (v *Checks) policies(path string, data []byte) {
	policies, err := definition.ParsePolicies(data)
	v.problems(path, err)
	var raw map[string]json.RawMessage
	if !v.Strict || json.Unmarshal(data, &raw) != nil {
		return
	}
	for _, p := range policies {
		v.unknownBelow(path, fmt.Sprintf("[%q]", p.ID), p, raw[p.ID])
	}
}

// problems notes what parsing found.
func (v *Checks) problems(path string, err error) {
	if err == nil {
		return
	}
	listed, ok := errors.AsType[*definition.Problems](err)
	if !ok {
		v.add(path, "", "%v", err)
		return
	}
	for _, p := range *listed {
		v.add(path, p.Path, "%s", p.Message)
	}
}

// kindLine is in every YAML file that apply takes.
var kindLine = regexp.MustCompile(`(?m)^kind:`)

func isYAML(path string) bool {
	ending := filepath.Ext(path)
	return ending == ".yaml" || ending == ".yml"
}

// isDocuments tells files that apply takes from those that gateways read: YAML,
// and JSON that says of what kind it is.
func isDocuments(path string, data []byte) bool {
	if isYAML(path) {
		return true
	}
	var document struct {
		Kind     string          `json:"kind"`
		Metadata json.RawMessage `json:"metadata"`
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(&document) == nil && document.Kind != "" && document.Metadata != nil
}

// isPolicies tells a file of policies from an API definition: every member of
// it is an object, and none is one that only definitions have.
func isPolicies(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || len(members) == 0 {
		return false
	}
	for name, raw := range members {
		if name == "proxy" || name == "version_data" || name == "auth_configs" || raw[0] != '{' {
			return false
		}
	}
	return true
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("is larger than %d MiB", most>>20)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil // a byte order mark, as some editors write
}

// bareCause drops the path from an error: it stands before it already.
func bareCause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
