package config

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
)

// settingsSource is the declaration of Config: the comments on its fields are
// the reference.
//
//go:embed settings*.go
var settingsSource embed.FS

// Reference returns the documentation of every setting as Markdown: key, default, what is
// allowed and what it means. It is generated from the declaration of Config, so that it
// agrees with the program.
func Reference() (string, error) {
	comments, err := fieldComments()
	if err != nil {
		return "", fmt.Errorf("reading the declaration of the configuration: %w", err)
	}
	var b strings.Builder
	b.WriteString(referenceHead)
	group := ""
	for _, f := range fieldsOf(Default()) {
		top, _, nested := strings.Cut(f.key, ".")
		if !nested {
			top = "top level"
		}
		if top != group {
			group = top
			fmt.Fprintf(&b, "\n## %s\n\n| Key | Default | Allowed | Meaning |\n|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, f.defaultText(), f.allowed(), escapeCell(comments[f.owner+"."+f.name]))
	}
	return b.String(), nil
}

const referenceHead = `# Configuration

A later source wins: default, ` + "`--config`" + ` files in their order, environment, flags. The
environment variable of a key is ` + "`SLUICE_`" + ` and the key in capitals with ` + "`_`" + ` for
each dot: ` + "`gateway.drain_timeout`" + ` is ` + "`SLUICE_GATEWAY_DRAIN_TIMEOUT`" + `. Lists are separated
by commas there. For a secret, the variable with ` + "`_FILE`" + ` at its end names a file that
holds it; in a YAML file a secret is a text, ` + "`{env: NAME}`" + ` or ` + "`{file: PATH}`" + `.

Durations have units (` + "`1m30s`, `200ms`" + `), sizes too (` + "`10MiB`, `16KiB`" + `). Unknown keys,
unknown variables, wrong types and values out of range stop the start; all of them are
named at once. Paths are relative to the working directory.
`

func (f field) defaultText() string {
	if text := f.String(); text != "" {
		return "`" + text + "`"
	}
	return "–"
}

// allowed describes the allowed values.
func (f field) allowed() string {
	if bounds := f.tag.Get("range"); bounds != "" {
		low, high, _ := strings.Cut(bounds, "..")
		return low + " to " + high
	}
	if words := strings.Fields(f.tag.Get("oneof")); len(words) > 0 {
		text := "`" + strings.Join(words, "`, `") + "`"
		if f.value.Type() == stringsType {
			return "list of " + text
		}
		return text
	}
	switch f.value.Type() {
	case secretType:
		return "secret"
	case prefixesType:
		return "list of CIDRs"
	}
	return f.allowedForm()
}

func (f field) allowedForm() string {
	switch form := f.tag.Get("form"); form {
	case "address":
		return "host:port"
	case "url":
		return "http or https address"
	case "header":
		return "header name"
	case "folder":
		return "absolute path"
	case "name", "token":
		return "letters, digits, `_`, `-`"
	}
	return strings.TrimPrefix(f.want(), "a ")
}

func escapeCell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// fieldComments reads the comment of every field, by Struct.Field.
func fieldComments() (map[string]string, error) {
	comments := make(map[string]string)
	files, err := fs.Glob(settingsSource, "*")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		source, err := settingsSource.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		addFile(comments, file)
	}
	return comments, nil
}

func addFile(comments map[string]string, file *ast.File) {
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			addComments(comments, spec.(*ast.TypeSpec))
		}
	}
}

func addComments(comments map[string]string, spec *ast.TypeSpec) {
	declared, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range declared.Fields.List {
		for _, name := range f.Names {
			comments[spec.Name.Name+"."+name.Name] = f.Doc.Text()
		}
	}
}
