package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// PlanOf returns the upstream request of an exchange. head is the request that would
// be sent, with or without its body.
func PlanOf(ex *pipeline.Exchange, head []byte) *Plan {
	if i := bytes.Index(head, []byte("\r\n\r\n")); i >= 0 {
		head = head[:i]
	}
	lines := strings.Split(string(head), "\r\n")
	method, rest, _ := strings.Cut(lines[0], " ")
	target, _, _ := strings.Cut(rest, " ")
	p := &Plan{Address: ex.Upstream.Address, Method: method, Target: target, Body: bodyOf(ex)}
	sent := linesOf(ex.Call)
	for _, line := range lines[1:] {
		name, _, _ := strings.Cut(line, ":")
		if at := slices.Index(sent, line); at >= 0 {
			sent = slices.Delete(sent, at, at+1)
		} else if !isFraming(name) {
			p.Added = append(p.Added, maskLine(line))
		}
	}
	for _, line := range sent {
		if name, _, _ := strings.Cut(line, ":"); !isFraming(name) {
			p.Removed = append(p.Removed, name)
		}
	}
	return p
}

// linesOf returns the header lines of a call.
func linesOf(call *wire.Call) []string {
	text := strings.TrimSuffix(string(call.Lines), "\r\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\r\n")
}

// isFraming reports whether a header only frames the message.
func isFraming(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection":
		return true
	}
	return false
}

// bodyOf describes the body that would be sent.
func bodyOf(ex *pipeline.Exchange) string {
	switch {
	case ex.Outgoing.HasBody:
		return fmt.Sprintf("%d bytes of the gateway's own", len(ex.Outgoing.Body))
	case ex.Call.Stream != nil:
		return "as the client sends it"
	case len(ex.Call.Body) > 0:
		return fmt.Sprintf("%d bytes", len(ex.Call.Body))
	}
	return ""
}
