package credentials

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/admin/rest"
)

// Bounds of the fields of a key request and of a key, which become meta data of
// sessions in the memory of gateways.
const (
	maxFields    = 50
	maxFieldName = 128  // bytes
	maxField     = 4096 // bytes of a value as JSON
)

// CheckFields refuses too many fields, values that are too large, and names that cannot
// be shown.
func CheckFields(fields map[string]json.RawMessage) error {
	if len(fields) > maxFields {
		return rest.BadRequest(fmt.Sprintf("fields: has %d members; at most %d are allowed", len(fields), maxFields))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "" || len(name) > maxFieldName || !rest.Printable(name) {
			return rest.BadRequest(fmt.Sprintf("fields: the name %.40q must be 1…%d bytes of printable text", name, maxFieldName))
		}
		if n := len(fields[name]); n > maxField {
			return rest.BadRequest(fmt.Sprintf("fields[%.40q]: has %d bytes of JSON; at most %d are allowed", name, n, maxField))
		}
	}
	return nil
}
