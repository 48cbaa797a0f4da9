// Command pack prepares the management UI: with -openapi it writes the description that
// the UI's types are generated from.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	openapi := flag.Bool("openapi", false, "write the admin's OpenAPI document to the standard output")
	flag.Parse()
	if err := run(*openapi); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(openapi bool) error {
	if openapi {
		return describe(context.Background(), os.Stdout)
	}
	return nil
}
