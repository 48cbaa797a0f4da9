package app

import (
	"fmt"
	"io"
	"net"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/config"
)

// Options are the options of a command besides its configuration.
type Options struct {
	Demo      bool            // up only: seed an empty database with sample objects
	Quiet     bool            // print no banner
	Stdout    io.Writer       // banner
	Stderr    io.Writer       // log
	SkipDrain <-chan struct{} // closed to stop without waiting for requests in flight
	Origins   config.Origins  // of the settings; nil: they are shown as defaults
}

// banner prints the addresses.
func (n *node) banner(w io.Writer, counters string) {
	from := "files             " + n.cfg.Gateway.AppsDir
	if n.adminURL != "" {
		from = "admin             " + n.adminURL
	}
	say(w, "configuration  %s\ncounters       %s\ngateway        %s\n", from, counters, n.url())
	if n.secure.ln != nil && n.traffic != nil {
		say(w, "gateway, TLS   %s\n", n.secure.url())
	}
	if n.controlLn != nil {
		say(w, "gateway API    %s/svc\n", urlOf(n.controlLn))
	}
	if n.telemetryLn != nil {
		say(w, "telemetry      %s/metrics\n", urlOf(n.telemetryLn))
	}
}

// urlOf returns the URL of a listener on this machine.
func urlOf(ln net.Listener) string {
	tcp, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return ln.Addr().String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if _, secure := ln.(*certs.Secured); secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// say prints to the user. Errors are ignored.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
