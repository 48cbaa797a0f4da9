package mapping

import (
	"github.com/redpanda-data/benthos/v4/public/bloblang"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // times, typed numbers
)

// The bounds of what a script can do by accident. They are not a defence against a script
// that is meant to do harm: nothing can stop a running script.
const (
	maxText       = 16 << 10 // of a script, in bytes: the parser takes time by the square of some texts
	maxNesting    = 32       // of brackets: the parser calls itself for each level
	maxRecursion  = 32       // of named maps
	maxRange      = 10_000   // items
	maxRepeat     = 1 << 20  // bytes
	maxDecompress = 16 << 20 // bytes: the largest message that can be configured
	maxNanoID     = 256      // characters
)

const (
	noMachine = "scripts have no access to the machine"
	noState   = "scripts keep nothing between messages"
	noBatch   = "messages are processed one by one"
	noErrors  = "what becomes of a message that a processor refuses is up to its on_error"
	noTraces  = "messages have no trace"
)

// removed returns the names that were taken out of the language, with the reason.
func removed() map[string]string {
	return map[string]string{
		"env": noMachine, "file": noMachine, "file_rel": noMachine, "hostname": noMachine,
		"json_schema": "schemas can name files, and " + noMachine,
		"bloblang":    "scripts are compiled when the configuration is loaded, not while they run",
		"count":       noState, "counter": noState,
		"error": noErrors, "errored": noErrors,
		"error_source_name": noErrors, "error_source_label": noErrors, "error_source_path": noErrors,
		"tracing_id": noTraces, "tracing_span": noTraces,
		"batch_index": noBatch, "batch_size": noBatch, "from": noBatch, "from_all": noBatch,
	}
}

// restricted returns the language: that of the library without what removed lists, and
// with bounds on what could take any amount of memory.
func restricted() (*bloblang.Environment, error) {
	names := []string{"range", "repeat", "decompress", "nanoid"}
	for name := range removed() {
		names = append(names, name)
	}
	env := bloblang.NewEnvironment().OnlyPure().WithDisabledImports().
		WithoutFunctions(names...).WithoutMethods(names...).
		WithMaxMapRecursion(maxRecursion)
	if err := env.RegisterFunctionV2("range", rangeSpec(), newRange); err != nil {
		return nil, err
	}
	if err := env.RegisterFunctionV2("nanoid", nanoIDSpec(), newNanoID); err != nil {
		return nil, err
	}
	if err := env.RegisterMethodV2("repeat", repeatSpec(), newRepeat); err != nil {
		return nil, err
	}
	return env, env.RegisterMethodV2("decompress", decompressSpec(), newDecompress)
}

// bounded returns what makes a text too large for the parser, nil if nothing does.
func bounded(text string) *Problem {
	if len(text) > maxText {
		return &Problem{Line: 1, Column: 1, Message: "the script is larger than 16 KiB"}
	}
	depth := 0
	for i := 0; i < len(text); {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth > maxNesting {
			line, column := place(text, i)
			return &Problem{Line: line, Column: column, Message: "brackets are nested more than 32 deep"}
		}
		i = lexeme(text, i)
	}
	return nil
}
