package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// The largest files that a gateway reads, in bytes.
const (
	maxAPIFile      = 4 << 20
	maxPoliciesFile = 256 << 20
)

// fileChecks reads API definitions and policies from files as a gateway does, and
// collects what is wrong with them.
type fileChecks struct {
	Strict   bool      // members that have no effect are problems
	Files    int       // number of files read
	Applied  int       // of these, files for apply
	Findings []finding // in the order found

	lookup declarative.Lookup // of variables in files
	apis   map[string]string  // api_id to the file that defines it
	paths  map[string]string  // domain and listen path to the file that claims them
}

// A finding is one problem of one file.
type finding struct {
	File, Path, Message string
	Unknown             bool // a member that has no effect: no error
}

// newFileChecks returns checks without findings.
func newFileChecks(lookup declarative.Lookup) *fileChecks {
	return &fileChecks{lookup: lookup, apis: make(map[string]string), paths: make(map[string]string)}
}

func (v *fileChecks) add(file, path, format string, args ...any) {
	v.Findings = append(v.Findings, finding{File: file, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Count returns the numbers of errors and of unknown members.
func (v *fileChecks) Count() (refused, unknown int) {
	for _, f := range v.Findings {
		if f.Unknown {
			unknown++
		} else {
			refused++
		}
	}
	return refused, unknown
}

// Path checks a file or a folder. The error is for a path that cannot be read.
func (v *fileChecks) Path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, shell.BareCause(err))
	}
	if !info.IsDir() {
		v.file(path, false)
		return nil
	}
	names, err := definitionFiles(path)
	if err != nil {
		return fmt.Errorf("reading folder %s: %w", path, shell.BareCause(err))
	}
	if len(names) == 0 {
		v.add(path, "", "no API definitions: the folder has no file *.json, *.yaml or *.yml")
	}
	for _, name := range names {
		v.file(name, true)
	}
	return nil
}

// definitionFiles lists the files of a folder that a gateway reads as API definitions,
// and those for apply, without companion documents (<id>-oas.json).
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

func (v *fileChecks) file(path string, inFolder bool) {
	v.Files++
	data, err := readBounded(path, maxPoliciesFile)
	if err != nil {
		v.add(path, "", "%v", shell.BareCause(err))
		return
	}
	if inFolder && isYAML(path) && !kindLine.Match(data) { // possibly a configuration
		v.Files--
		return
	}
	if isDocuments(path, data) {
		v.Applied++
		objects, wrong := declarative.Parse(path, data, v.lookup)
		for _, one := range wrong {
			v.add(path, "", "%s", strings.TrimPrefix(strings.TrimPrefix(one, path), ": "))
		}
		for _, o := range objects {
			v.unknownBelow(o.Where, "spec", o.Unknown())
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

// api checks one definition, and that no other file has the same id or route.
func (v *fileChecks) api(path string, data []byte) {
	api, err := definition.ParseAPI(data)
	v.problems(path, err)
	if api == nil {
		return
	}
	v.unknownBelow(path, "", api.UnknownMembers())
	for _, warning := range api.Warnings() {
		v.add(path, warning.Path, "%s", warning.Message)
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

// unknownBelow reports members of an object that this release preserves but does not
// know.
func (v *fileChecks) unknownBelow(file, path string, unknown definition.Problems) {
	for _, p := range unknown {
		v.Findings = append(v.Findings, finding{File: file, Path: strings.TrimPrefix(path+"."+p.Path, "."), Message: p.Message, Unknown: true})
	}
}

// claim reserves a value that only one file may use.
func (v *fileChecks) claim(taken map[string]string, what, file, path, message string) {
	if first, ok := taken[what]; ok && first != file {
		v.add(file, path, message, first)
		return
	}
	taken[what] = file
}

func (v *fileChecks) policies(path string, data []byte) {
	policies, err := definition.ParsePolicies(data)
	v.problems(path, err)
	for _, p := range policies {
		for _, warning := range p.Warnings() {
			v.add(path, fmt.Sprintf("[%q].%s", p.ID, warning.Path), "%s", warning.Message)
		}
	}
	for _, p := range policies {
		v.unknownBelow(path, fmt.Sprintf("[%q]", p.ID), p.UnknownMembers())
	}
}

// problems adds the problems of parsing.
func (v *fileChecks) problems(path string, err error) {
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

// kindLine matches every YAML file for apply.
var kindLine = regexp.MustCompile(`(?m)^kind:`)

func isYAML(path string) bool {
	ending := filepath.Ext(path)
	return ending == ".yaml" || ending == ".yml"
}

// isDocuments reports whether a file is for apply and not for gateways: YAML, or JSON
// with a kind.
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

// isPolicies reports whether a file holds policies and no API definition: every member is
// an object, and none is specific to definitions.
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

func lacksSDL(m definition.GraphQLMember) bool { return strings.TrimSpace(m.SDL) == "" }

// graphQL checks the schema of an API, and by it the operations that the definition
// holds. Lines and columns are those of the schema or operation, which is one string in
// the file.
func (v *fileChecks) graphQL(path string, api *definition.API) {
	if !api.IsGraphQL() || api.IsSupergraph() && slices.ContainsFunc(api.GraphQL.Supergraph.Subgraphs, lacksSDL) {
		return // the admin composes what has no schema yet
	}
	s, err := change.Schema(api)
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		for _, p := range *wrong {
			v.add(path, p.Path, "%s", p.Message)
		}
		return
	}
	if wrong, ok := errors.AsType[*sdl.Errors](err); ok {
		for _, p := range wrong.Problems {
			v.add(path, fmt.Sprintf("%s:%d:%d", definition.SchemaPath, p.Location.Line, p.Location.Column), "%s", p.Message)
		}
		return
	}
	if err != nil {
		v.add(path, definition.SchemaPath, "%v", err)
		return
	}
	for _, o := range change.Operations(api) {
		for _, problem := range o.Problems(s) {
			v.add(path, o.Path, "%s", o.Describe(problem))
		}
	}
	for _, p := range change.DataGraph(api, s) {
		v.add(path, p.Path, "%s", p.Message)
	}
}
