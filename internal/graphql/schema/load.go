package schema

import (
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
