package rest

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Raw is JSON that is passed on as it is. The OpenAPI document describes it as a T.
type Raw[T any] json.RawMessage

// MarshalJSON returns the JSON, or null.
func (r Raw[T]) MarshalJSON() ([]byte, error) { return json.RawMessage(r).MarshalJSON() }

// UnmarshalJSON takes in a copy of the JSON.
func (r *Raw[T]) UnmarshalJSON(text []byte) error { return (*json.RawMessage)(r).UnmarshalJSON(text) }

// Schema returns the schema of a T.
func (Raw[T]) Schema(registry huma.Registry) *huma.Schema {
	return registry.Schema(reflect.TypeFor[T](), true, "")
}
