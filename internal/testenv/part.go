package testenv

import (
	"fmt"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Part reads a part of a definition, such as a definition.CORS, from JSON, without
// validating it; nil from "" and null. It panics if the text cannot be read.
func Part[T any](text string) *T {
	if text == "" || text == "null" {
		return nil
	}
	v := new(T)
	if faults := object.Decode([]byte(text), v); len(faults) > 0 {
		panic(fmt.Sprintf("%s: %v", text, faults))
	}
	return v
}
