package schema

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// Load parses, checks and compiles a schema. The error is an *sdl.Errors with all
// problems. The schema does not reference the text.
func Load(text string) (*Schema, error) {
	doc, err := sdl.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	return Compile(doc), nil
}

// LoadServed is Load for serving a stored schema: harmless problems are returned for
// the log and do not prevent its use. The first of repeated definitions applies.
func LoadServed(text string) (*Schema, []*sdl.Problem, error) {
	doc, err := sdl.Parse(text)
	if doc == nil {
		return nil, nil, fmt.Errorf("reading a schema: %w", err)
	}
	if found, ok := errors.AsType[*sdl.Errors](err); ok {
		return Compile(doc), found.Problems, nil
	}
	return Compile(doc), nil, nil
}
