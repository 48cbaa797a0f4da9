package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxFile bounds a configuration file.
const maxFile = 64 << 10

// readFile applies a YAML file.
func (l *loader) readFile(path string) {
	text, err := readText(path)
	if err != nil {
		l.problem(place{origin: Origin{Kind: FromFile, Name: path}}, "", err.Error())
		return
	}
	l.readYAML(newSource(path, text), text)
}

func readText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", bareCause(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", bareCause(err))
	}
	if len(text) > maxFile {
		return nil, errors.New("is larger than 64 KiB; is it a configuration?")
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil // a byte order mark, as some editors write
}

// bareCause drops the path from an error, because the message has it already.
func bareCause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// readYAML applies a YAML text.
func (l *loader) readYAML(src source, text []byte) {
	file, err := parse(text)
	if err != nil {
		l.problem(syntaxPlace(src, err), "", syntaxMessage(err))
		return
	}
	w := walker{loader: l, src: src}
	for i, doc := range file.Docs {
		if i > 0 && doc.Body != nil {
			l.problem(w.place(doc.Body, false), "", "a second document begins here; give it a file of its own")
			return
		}
		w.document(doc.Body)
	}
}

// parse wraps the YAML parser, which panics on some malformed texts and uses memory
// proportional to the square of the depth.
func parse(text []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("not valid YAML")
		}
	}()
	tokens := lexer.Tokenize(string(text))
	if deep := tooDeep(tokens); deep != nil {
		return nil, &yaml.SyntaxError{Message: "nested too deeply", Token: deep}
	}
	// Duplicates are allowed here because the parser stops at the first.
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tooDeep returns the token at which a text nests deeper than any configuration, or nil.
// Only nesting within a line is counted; the size of the file bounds the rest.
func tooDeep(tokens token.Tokens) *token.Token {
	const deepest = 16
	braces, row := 0, 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			braces++
		case token.MappingEndType, token.SequenceEndType:
			braces--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			row++
		default:
			row = 0
		}
		if braces > deepest || row > deepest {
			return tk
		}
	}
	return nil
}

func syntaxPlace(src source, err error) place {
	broken, ok := errors.AsType[yaml.Error](err)
	if !ok || broken.GetToken() == nil || broken.GetToken().Position == nil {
		return place{origin: Origin{Kind: FromFile, Name: src.name}}
	}
	at := broken.GetToken().Position
	return place{origin: src.at(at.Line, at.Column), src: src}
}

func syntaxMessage(err error) string {
	if broken, ok := errors.AsType[yaml.Error](err); ok {
		return "not valid YAML: " + broken.GetMessage()
	}
	return "not valid YAML"
}

// A walker walks the tree of one file.
type walker struct {
	*loader
	src source
}

func (w walker) place(n ast.Node, keyOnly bool) place {
	if entries, ok := mapping(n); ok && len(entries) > 0 && n.GetToken().Value == ":" {
		n = entries[0].Key // the token of a mapping without braces is its first colon
	}
	tk := n.GetToken()
	if tk == nil || tk.Position == nil {
		return place{origin: Origin{Kind: FromFile, Name: w.src.name}}
	}
	at := tk.Position
	return place{origin: w.src.at(at.Line, at.Column), src: w.src, keyOnly: keyOnly}
}

// document walks the top of a file. A file that is empty or has only comments changes
// nothing.
func (w walker) document(body ast.Node) {
	switch body := body.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return
	default:
		w.group("", body)
	}
}

// group walks the mapping of a group of settings.
func (w walker) group(key string, n ast.Node) {
	entries, ok := mapping(n)
	if !ok {
		w.problem(w.place(n, false), key, "is "+describe(n)+"; want keys and values below it: "+firstNames(w.groups[key]))
		return
	}
	seen := make(map[string]int, len(entries))
	for _, entry := range entries {
		w.entry(key, entry, seen)
	}
}

// entry sets one setting or walks one group. seen holds the lines of the names
// met so far.
func (w walker) entry(group string, entry *ast.MappingValueNode, seen map[string]int) {
	name := entry.Key.GetToken().Value
	key := join(group, name)
	if entry.Key.IsMergeKey() {
		w.problem(w.place(entry.Key, true), "", "merge keys are not supported; write the values out")
		return
	}
	if line, twice := seen[name]; twice {
		w.problem(w.place(entry.Key, true), key, fmt.Sprintf("given twice; first on line %d", line))
		return
	}
	seen[name] = w.place(entry.Key, true).origin.Line
	nested := !strings.Contains(name, ".") // a dotted name would hide duplicates
	if f, ok := w.byKey[key]; ok && nested {
		if strings.HasPrefix(key, dotted) {
			w.setOnce(key, f, entry)
		} else {
			w.setNode(f, entry.Value)
		}
		return
	}
	nested = nested || group == dotted
	if other := alsoCalled[key]; other != "" {
		w.setOther(other, entry)
		return
	}
	if _, ok := w.groups[key]; !ok || !nested || name == "" {
		w.problem(w.place(entry.Key, true), key, w.unknown(group, name))
		return
	}
	if _, empty := entry.Value.(*ast.NullNode); !empty { // all below it is commented out
		w.group(key, entry.Value)
	}
}

// dotted is the group whose names may be written with dots, as in other gateways that
// have the same ids: auth.key_not_found.
const dotted = "override_messages"

// setOther sets a setting by an alias.
func (w walker) setOther(key string, entry *ast.MappingValueNode) {
	w.setOnce(key, w.byKey[key], entry)
}

// setOnce sets a setting that may have been set by another of its names.
func (w walker) setOnce(key string, f field, entry *ast.MappingValueNode) {
	if before, ok := w.places[key]; ok && before.origin.Name == w.src.name {
		w.problem(w.place(entry.Key, true), key, fmt.Sprintf("given twice; first on line %d", before.origin.Line))
		return
	}
	w.setNode(f, entry.Value)
}

func firstNames(names []string) string {
	const most = 3
	shown := ""
	for i, name := range names {
		switch {
		case i == most:
			return shown + ", …"
		case i > 0:
			shown += ", "
		}
		shown += name
	}
	return shown
}

// mapping returns the entries of a mapping, for which the parser has two forms.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// describe names the kind of a node in YAML's terms.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "a truth value"
	case *ast.NullNode:
		return "empty"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias, which is not supported"
	case *ast.TagNode:
		return "a YAML tag, which is not supported"
	}
	return "something else"
}
