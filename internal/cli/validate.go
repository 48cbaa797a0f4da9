package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/unknown"
)

// The largest files that a gateway reads, in bytes.
const (
	maxAPIFile      = 4 << 20
	maxPoliciesFile = 256 << 20
)

func (s *session) validateCommand() *cobra.Command {
	v := &validation{apis: make(map[string]string), paths: make(map[string]string)}
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check API definitions and policies without a server",
		Long: `Checks files of API definitions, folders of them, and files of policies (an object
from policy id to policy). Of a GraphQL API the schema is checked too, and by it
the operations that the definition holds. Prints each problem with its file and
JSON path; lines and columns are those of the schema or operation.

Exit code 6 means that something would be refused. With --strict, members that
this release does not know count as well; alone they end with exit code 5.`,
		Example: "  sluice validate ./apps policies.json\n  sluice validate --strict -o json ./apps",
		Args:    somePaths,
		RunE:    func(_ *cobra.Command, args []string) error { return s.validate(v, args) },
	}
	cmd.Flags().BoolVar(&v.strict, "strict", false, "also report members that this release does not know")
	return cmd
}

func somePaths(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("say which files or folders to check")
	}
	return nil
}

func (s *session) validate(v *validation, paths []string) error {
	for _, path := range paths {
		if err := v.path(path); err != nil {
			return err
		}
	}
	if err := s.printFindings(v); err != nil {
		return err
	}
	refused, unknown := v.count()
	switch summary := fmt.Sprintf("%s in %s", plural(refused+unknown, "problem"), plural(v.files, "file")); {
	case refused > 0:
		return &exitError{ExitRefused, summary}
	case unknown > 0:
		return &exitError{ExitDifferences, summary}
	case s.output == "table":
		return s.remark("%s, no problem", plural(v.files, "file"))
	}
	return nil
}

// printFindings writes one line per problem, or data with -o.
func (s *session) printFindings(v *validation) error {
	if s.output != "table" {
		data := rows{columns: []string{"file", "path", "message", "unknown"}}
		for _, f := range v.findings {
			data.cells = append(data.cells, []any{f.file, f.path, f.message, f.unknown})
		}
		return s.print(data)
	}
	var b strings.Builder
	for _, f := range v.findings {
		b.WriteString(f.file + ": ")
		if f.path != "" {
			b.WriteString(f.path + ": ")
		}
		b.WriteString(f.message + "\n")
	}
	return s.write(b.String())
}

// plural writes 1 file, 2 files.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// validation checks files one after the other and gathers what is wrong.
type validation struct {
	strict   bool
	files    int
	findings []finding
	apis     map[string]string // api_id to the file that defines it
	paths    map[string]string // domain and listen path to the file that claims them
}

// A finding is one problem of one file.
type finding struct {
	file, path, message string
	unknown             bool // a member that is not known: no reason to refuse the file
}

func (v *validation) add(file, path, format string, args ...any) {
	v.findings = append(v.findings, finding{file: file, path: path, message: fmt.Sprintf(format, args...)})
}

func (v *validation) count() (refused, unknown int) {
	for _, f := range v.findings {
		if f.unknown {
			unknown++
		} else {
			refused++
		}
	}
	return refused, unknown
}

// path checks a file or a folder. The error is of one that cannot be read at
// all, such as a name that was mistyped.
func (v *validation) path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &exitError{ExitUsage, fmt.Sprintf("%s: %v", path, bareCause(err))}
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
		v.add(path, "", "no API definitions: the folder has no file *.json")
	}
	for _, name := range names {
		v.file(name, true)
	}
	return nil
}

// definitionFiles lists the files of a folder that a gateway takes for API
// definitions; a companion document <id>-oas.json is none.
func definitionFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".json") || strings.HasSuffix(name, "-oas.json") || strings.HasPrefix(name, ".") {
			continue
		}
		files = append(files, filepath.Join(dir, name))
	}
	return files, nil
}

func (v *validation) file(path string, inFolder bool) {
	v.files++
	data, err := readBounded(path, maxPoliciesFile)
	if err != nil {
		v.add(path, "", "%v", bareCause(err))
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
func (v *validation) api(path string, data []byte) {
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
func (v *validation) unknownBelow(file, path string, object any, raw json.RawMessage) {
	if !v.strict {
		return
	}
	for _, m := range unknown.Members(object, raw, path) {
		message := "is not known to this release and has no effect"
		if near := config.Nearest(m.Name, m.Known); near != "" {
			message += "; did you mean " + near + "?"
		}
		v.findings = append(v.findings, finding{file: file, path: m.Path, message: message, unknown: true})
	}
}

// claim notes that a file has taken something that only one file may have.
func (v *validation) claim(taken map[string]string, what, file, path, message string) {
	if first, ok := taken[what]; ok && first != file {
		v.add(file, path, message, first)
		return
	}
	taken[what] = file
}

func (v *validation) policies(path string, data []byte) {
	policies, err := definition.ParsePolicies(data)
	v.problems(path, err)
	var raw map[string]json.RawMessage
	if !v.strict || json.Unmarshal(data, &raw) != nil {
		return
	}
	for _, p := range policies {
		v.unknownBelow(path, fmt.Sprintf("[%q]", p.ID), p, raw[p.ID])
	}
}

// problems notes what parsing found.
func (v *validation) problems(path string, err error) {
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
