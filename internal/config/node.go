package config

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"
	"github.com/sluicegate/sluice/internal/secret"
)

// setNode sets f from a YAML value. Types are strict, without conversions.
func (w walker) setNode(f field, n ast.Node) {
	var err error
	switch f.value.Type() {
	case secretType:
		err = w.setSecret(f, n)
	case stringsType, prefixesType:
		w.setSequence(f, n)
		return
	default:
		err = f.setScalar(n)
	}
	w.set(f, w.place(n, false), err)
}

// setScalar sets everything but secrets and lists.
func (f field) setScalar(n ast.Node) error {
	if _, empty := n.(*ast.NullNode); empty {
		return errNoValue
	}
	text, isText := textOf(n)
	switch f.value.Type() {
	case durationType, bytesType:
		if isText {
			return f.setUnit(text)
		}
		if number, ok := numberOf(n); ok {
			return f.setUnit(number) // reports the missing unit
		}
		return f.wrongType(n)
	}
	switch f.value.Kind() {
	case reflect.String:
		if isText {
			f.value.SetString(text)
			return nil
		}
		return f.wrongText(n)
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			f.value.SetBool(b.Value)
			return nil
		}
		return f.wrongType(n)
	}
	return f.setNumber(n)
}

func (f field) setNumber(n ast.Node) error {
	number, ok := numberOf(n)
	if !ok {
		return f.wrongType(n)
	}
	if f.value.Kind() == reflect.Float64 {
		return f.setFloat(number)
	}
	return f.setInt(number)
}

// wrongText explains why a number or truth value is not accepted as text: 0123 is not the
// text 0123 in YAML.
func (f field) wrongText(n ast.Node) error {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return fmt.Errorf("is %s; want a text: put it in quotes", describe(n))
	}
	return f.wrongType(n)
}

func (f field) wrongType(n ast.Node) error {
	if text, ok := textOf(n); ok {
		return fmt.Errorf("is the text %s; want %s", quote(text), f.want())
	}
	return fmt.Errorf("is %s; want %s", describe(n), f.want())
}

// setSequence sets a list and names an invalid element.
func (w walker) setSequence(f field, n ast.Node) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		w.set(f, w.place(n, false), f.wrongType(n))
		return
	}
	items := make([]string, 0, len(list.Values))
	for i, element := range list.Values {
		item, isText := textOf(element)
		if !isText {
			w.set(f, w.place(element, false), fmt.Errorf("element %d is %s; want a text", i+1, describe(element)))
			continue
		}
		if err := f.setList([]string{item}); err != nil { // overwritten below; tries this element alone
			w.set(f, w.place(element, false), err)
			continue
		}
		items = append(items, item)
	}
	if !w.broken[f.key] {
		w.set(f, w.place(n, false), f.setList(items))
	}
}

// setSecret sets a secret from a text or from a reference.
func (w walker) setSecret(f field, n ast.Node) error {
	if _, empty := n.(*ast.NullNode); empty {
		return errNoValue
	}
	if text, ok := textOf(n); ok {
		return f.setText(text)
	}
	entries, ok := mapping(n)
	if !ok {
		return f.wrongText(n)
	}
	ref, err := reference(entries)
	if err != nil {
		return err
	}
	v, err := ref.Resolve(w.lookup)
	if err != nil {
		return err
	}
	return f.setText(v.Reveal())
}

func reference(entries []*ast.MappingValueNode) (secret.Reference, error) {
	wrong := errors.New("is a mapping; want a text, {env: NAME} or {file: PATH}")
	if len(entries) != 1 {
		return secret.Reference{}, wrong
	}
	text, ok := textOf(entries[0].Value)
	if !ok || text == "" {
		return secret.Reference{}, wrong
	}
	switch entries[0].Key.GetToken().Value {
	case "env":
		return secret.Reference{Env: text}, nil
	case "file":
		return secret.Reference{File: text}, nil
	}
	return secret.Reference{}, wrong
}

func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// numberOf returns a decimal number as it is written in the file.
func numberOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return fmt.Sprint(n.Value), true
	case *ast.FloatNode:
		return n.Token.Value, true
	}
	return "", false
}
