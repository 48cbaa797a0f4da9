package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/secret"
)

// setText sets f from the text of an environment variable or a flag. Lists are
// separated by commas.
func (f field) setText(text string) error {
	switch f.value.Type() {
	case secretType:
		f.value.Set(reflect.ValueOf(secret.New(text)))
		return nil
	case stringsType, prefixesType:
		return f.setList(splitList(text))
	case durationType, bytesType:
		return f.setUnit(text)
	}
	switch f.value.Kind() {
	case reflect.String:
		f.value.SetString(text)
		return nil
	case reflect.Bool:
		return f.setBool(text)
	case reflect.Int:
		return f.setInt(text)
	case reflect.Float64:
		return f.setFloat(text)
	}
	return fmt.Errorf("cannot be set: its type %s is unknown", f.value.Type()) // a test sets every field
}

// setUnit sets a duration or a size.
func (f field) setUnit(text string) error {
	if f.value.Type() == durationType {
		d, err := parseDuration(text)
		if err != nil {
			return err
		}
		f.value.SetInt(int64(d))
		return nil
	}
	b, err := parseBytes(text)
	if err != nil {
		return err
	}
	f.value.SetInt(int64(b))
	return nil
}

func (f field) setBool(text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("%s is not a truth value; want true or false", quote(text))
	}
	f.value.SetBool(text == "true")
	return nil
}

func (f field) setInt(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a whole number", quote(text))
	}
	f.value.SetInt(n)
	return nil
}

func (f field) setFloat(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != x {
		return fmt.Errorf("%s is not a number", quote(text))
	}
	f.value.SetFloat(x)
	return nil
}

func (f field) setList(items []string) error {
	if len(items) == 0 { // one form of "none", so that configurations compare
		f.value.SetZero()
		return nil
	}
	if f.value.Type() == stringsType {
		f.value.Set(reflect.ValueOf(items))
		return nil
	}
	var prefixes []netip.Prefix
	for _, item := range items {
		p, err := parsePrefix(item)
		if err != nil {
			return err
		}
		prefixes = append(prefixes, p)
	}
	f.value.Set(reflect.ValueOf(prefixes))
	return nil
}

func splitList(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// parsePrefix parses a CIDR. Bare addresses and set host bits are refused as likely
// mistakes.
func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.Prefix{}, fmt.Errorf("%s has no length; did you mean %s/%d?", quote(text), addr, addr.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%s is not a network; want a CIDR such as 10.0.0.0/8 or fd00::/8", quote(text))
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("%s has bits set beyond its length; did you mean %s?", quote(text), p.Masked())
	}
	return p, nil
}

func joinPrefixes(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

func formatPlain(v any) string {
	if x, ok := v.(float64); ok {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// want describes the values that f accepts, for messages about wrong types.
func (f field) want() string {
	switch f.value.Type() {
	case secretType:
		return "a text, {env: NAME} or {file: PATH}"
	case stringsType:
		return "a list of texts, such as [a, b]"
	case prefixesType:
		return "a list of CIDRs, such as [10.0.0.0/8]"
	case durationType:
		return "a duration such as 15s"
	case bytesType:
		return "a size such as 10MiB"
	}
	switch f.value.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "a text"
}

var errNoValue = errors.New("has no value; remove the line to keep the default")
