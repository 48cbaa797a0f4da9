// Command profiled is Sluice with one more listener: the address in PROFILES_LISTEN serves
// Go's profiles and the numbers of its memory. Load tests measure with it where the
// process's size does not say enough.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof" // serves profiles below /debug/pprof/
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/sluicegate/sluice/internal/cli"
)

func main() {
	ln, err := net.Listen("tcp", os.Getenv("PROFILES_LISTEN"))
	if err != nil {
		log.Fatalf("PROFILES_LISTEN: %v", err)
	}
	http.HandleFunc("/memory", memory)
	go func() { log.Print(http.Serve(ln, nil)) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Process{
		Args: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Commands: cli.Wired(),
	})
	stop()
	os.Exit(code)
}

// memory collects garbage twice, so that pools are empty too, gives memory that is not in
// use back to the system, and returns runtime.MemStats as JSON.
func memory(w http.ResponseWriter, _ *http.Request) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_ = json.NewEncoder(w).Encode(&m) // the client sees that it is cut off
}
