package declarative

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxFile bounds one file, in bytes.
const maxFile = 64 << 20

// later are kinds that a later release may support.
var later = []string{"OASAPI", "Catalogue", "Developer", "Supergraph"}

// A document is one object in file form.
type document struct {
	Kind     string `json:"kind" yaml:"kind"`
	Metadata struct {
		Name   string            `json:"name" yaml:"name"`
		Labels map[string]string `json:"labels" yaml:"labels"`
	} `json:"metadata" yaml:"metadata"`
	Hash     string          `json:"hash" yaml:"hash"`
	Generate bool            `json:"generate" yaml:"generate"`
	Spec     json.RawMessage `json:"spec" yaml:"-"`
	YAML     any             `json:"-" yaml:"spec"`
}

// Read reads files, and folders with their subfolders. "-" is stdin. References to
// secrets are resolved: variables of the environment by lookup, files below the folder of
// the file that refers to them. Problems of the contents are returned as a Wrong.
func Read(paths []string, stdin io.Reader, lookup Lookup) (*Set, error) {
	set := new(Set)
	var wrong Wrong
	for _, path := range paths {
		files, err := list(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := contents(file, stdin)
			if err != nil {
				return nil, err
			}
			objects, problems := Parse(file, data, lookup)
			wrong = append(wrong, problems...)
			if twice, ok := errors.AsType[Wrong](set.Add(objects...)); ok {
				wrong = append(wrong, twice...)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return set, nil
}

// list returns the files of a path, in order.
func list(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != path
		if entry.IsDir() && hidden {
			return fs.SkipDir
		}
		if !entry.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			files = append(files, name)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: has no file *.yaml, *.yml or *.json", path)
	}
	return files, err
}

func contents(file string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		from = opened
	}
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("is larger than %d MiB", maxFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil // as some editors write
}

// Parse reads the documents of one file, and returns the problems. lookup is that of
// Read.
func Parse(file string, data []byte, lookup Lookup) ([]*Object, Wrong) {
	next := fromYAML(data)
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		next = fromJSON(data)
	}
	var objects []*Object
	var wrong Wrong
	for n := 1; ; n++ {
		d, err := next()
		where := file
		if n > 1 {
			where = fmt.Sprintf("%s: document %d", file, n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return objects, wrong
		case err != nil: // the rest cannot be parsed
			return objects, append(wrong, where+": "+strings.TrimSpace(yaml.FormatError(err, false, true)))
		case d.Kind == "" && d.Metadata.Name == "" && d.Spec == nil: // an empty document
			continue
		}
		o, problems := d.object(where, &resolver{lookup: lookup, dir: folderOf(file)})
		if wrong = append(wrong, problems...); len(problems) == 0 {
			objects = append(objects, o)
		}
	}
}

func fromYAML(data []byte) func() (*document, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField())
	return func() (*document, error) {
		d := new(document)
		err := dec.Decode(d)
		if err != nil || d.YAML == nil {
			return d, err
		}
		d.Spec, err = encode(d.YAML)
		return d, err
	}
}

func fromJSON(data []byte) func() (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return func() (*document, error) {
		d := new(document)
		return d, dec.Decode(d)
	}
}

// folderOf returns the folder that paths in a file are relative to.
func folderOf(file string) string {
	if file == "-" {
		return "."
	}
	return filepath.Dir(file)
}

// object converts a document, or returns its problems.
func (d *document) object(where string, secrets *resolver) (*Object, Wrong) {
	o := &Object{Kind: Kind(d.Kind), Name: d.Metadata.Name, Labels: d.Metadata.Labels, Hash: d.Hash, Generate: d.Generate, Where: where}
	var wrong Wrong
	add := func(format string, args ...any) { wrong = append(wrong, where+": "+fmt.Sprintf(format, args...)) }
	switch {
	case d.Kind == "":
		add(`kind: is missing; want API, Policy or Key (definitions without it are read by "import")`)
		return nil, wrong
	case slices.Contains(later, d.Kind):
		add("kind: this release does not have %s; it has API, Policy and Key", d.Kind)
		return nil, wrong
	case !slices.Contains(kinds, o.Kind):
		add("kind: %q is unknown; want API, Policy or Key", d.Kind)
		return nil, wrong
	}
	if d.Metadata.Name == "" {
		add("metadata.name: is required")
	}
	var members map[string]json.RawMessage
	d.Spec = secrets.resolve(d.Spec)
	for _, p := range secrets.wrong {
		add("%s", p)
	}
	if len(d.Spec) == 0 || json.Unmarshal(d.Spec, &members) != nil || members == nil {
		add("spec: must be an object: the %s itself", strings.ToLower(d.Kind))
	}
	if o.Kind == Key {
		if (d.Hash != "") == d.Generate {
			add("a Key has either hash, or generate: true")
		}
		if len(d.Metadata.Labels) > 0 {
			add("metadata.labels: keys are never pruned and have no labels")
		}
	} else if d.Hash != "" || d.Generate {
		add("hash and generate belong to keys")
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	problems := o.set(members, secrets.found)
	for _, p := range problems {
		add("%s", p)
	}
	return o, wrong
}
