// Command cosmo writes what Cosmo's router needs to know of the load tests'
// upstream: cosmo SCHEMA URL FILE.
package main

import (
	"log"
	"os"

	"github.com/wundergraph/cosmo/composition-go"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("want a schema's file, the upstream's URL, and the file to write")
	}
	schema, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatalf("reading the schema: %v", err)
	}
	config, err := composition.BuildRouterConfiguration(&composition.Subgraph{Name: "countries", URL: os.Args[2], Schema: string(schema)})
	if err != nil {
		log.Fatalf("composing: %v", err)
	}
	if err := os.WriteFile(os.Args[3], []byte(config), 0o600); err != nil {
		log.Fatalf("writing the configuration: %v", err)
	}
}
