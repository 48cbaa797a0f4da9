package config

import (
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// envPrefix begins the name of every environment variable of the program.
const envPrefix = "SLUICE_"

// A field is one setting: a leaf of Config.
type field struct {
	key   string        // such as gateway.listen
	value reflect.Value // settable, in the Config that fieldsOf was given
	tag   reflect.StructTag
	owner string // the struct that declares it; name is the field's name
	name  string
}

var (
	secretType   = reflect.TypeFor[secret.Value]()
	durationType = reflect.TypeFor[time.Duration]()
	bytesType    = reflect.TypeFor[Bytes]()
	stringsType  = reflect.TypeFor[[]string]()
	prefixesType = reflect.TypeFor[[]netip.Prefix]()
)

// fieldsOf returns the settings of cfg in the order of their declaration.
func fieldsOf(cfg *Config) []field {
	return appendFields(nil, reflect.ValueOf(cfg).Elem(), "")
}

func appendFields(fields []field, group reflect.Value, prefix string) []field {
	for i := range group.NumField() {
		declared := group.Type().Field(i)
		f := field{
			key:   prefix + declared.Tag.Get("yaml"),
			value: group.Field(i),
			tag:   declared.Tag,
			owner: group.Type().Name(),
			name:  declared.Name,
		}
		if f.isGroup() {
			fields = appendFields(fields, f.value, f.key+".")
			continue
		}
		fields = append(fields, f)
	}
	return fields
}

func (f field) isGroup() bool { return f.value.Kind() == reflect.Struct && !f.isSecret() }

func (f field) isSecret() bool { return f.value.Type() == secretType }

// env is the name of the environment variable that sets f.
func (f field) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.key, ".", "_"))
}

// String is the value as a file or a variable would give it; a secret is ***,
// or nothing when it is empty.
func (f field) String() string {
	switch v := f.value.Interface().(type) {
	case secret.Value:
		if v.Empty() {
			return ""
		}
		return v.String()
	case time.Duration:
		return formatDuration(v)
	case []string:
		return strings.Join(v, ",")
	case []netip.Prefix:
		return joinPrefixes(v)
	default:
		return formatPlain(v)
	}
}
