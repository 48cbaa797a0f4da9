package schema

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// Load reads and checks the text of a schema and compiles it. The error is an
// *sdl.Errors with everything that is wrong. The text is not held on to.
func Load(text string) (*Schema, error) {
	doc, err := sdl.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading a schema: %w", err)
	}
	return Compile(doc), nil
}

// LoadServed is Load for a schema that is to be served and not to be saved:
// harmless problems are returned beside it, for the log, and do not keep it from
// being used. Of what is defined twice, the first counts.
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
