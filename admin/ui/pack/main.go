// Command pack puts the built management UI into admin/ui/ui.zip, which the program
// embeds. It is run from the root of the repository.
//
//	pack            write the zip from admin/ui/web/dist
//	pack -check     fail when the zip is not what was built
//	pack -openapi   print the description that the UI's types are generated from
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	checking := flag.Bool("check", false, "compare what was built with the zip, and write nothing")
	openapi := flag.Bool("openapi", false, "write the admin's OpenAPI document to the standard output")
	flag.Parse()
	run := pack
	switch {
	case *openapi:
		run = func() error { return describe(context.Background(), os.Stdout) }
	case *checking:
		run = check
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}
