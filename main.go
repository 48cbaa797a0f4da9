// Sluice is an API gateway.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluicegate/sluice/internal/cli"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	signals, skipDrain := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // the first signal stops, the second does not wait for requests in flight
		<-signals
		stop()
		<-signals
		close(skipDrain)
	}()
	os.Exit(cli.Run(ctx, cli.Process{
		Args: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SkipDrain: skipDrain, Commands: cli.Wired(),
	}))
}
