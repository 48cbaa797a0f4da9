package app

import (
	"fmt"
	"io"
	"net"
)

// Options is what a command is told beside its configuration.
type Options struct {
	Demo      bool            // up only: seed an empty database with sample objects
	Quiet     bool            // print no banner
	Stdout    io.Writer       // banner
	Stderr    io.Writer       // log
	SkipDrain <-chan struct{} // closed when the stop shall no longer wait for requests in flight
}

// banner prints what serves where.
func (n *node) banner(w io.Writer, counters string) {
	from := "files             " + n.cfg.Gateway.AppsDir
	if n.adminURL != "" {
		from = "admin             " + n.adminURL
	}
	say(w, "configuration  %s\ncounters       %s\ngateway        %s\n", from, counters, n.url())
	if n.secure.ln != nil && n.traffic != nil {
		say(w, "gateway, TLS   %s\n", n.secure.url())
	}
	if n.telemetryLn != nil {
		say(w, "telemetry      %s/metrics\n", urlOf(n.telemetryLn))
	}
}

// urlOf is where people reach a listener from this machine.
func urlOf(ln net.Listener) string {
	tcp, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return ln.Addr().String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// say prints to a person. Nothing stops because it cannot be shown.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
