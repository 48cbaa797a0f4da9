package cli

import (
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
)

// readCertificate reads the certificates in a PEM file, without private keys.
func readCertificate(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", shell.Exit(shell.ExitUsage, fmt.Sprintf("--cert %s: %v", name, shell.BareCause(err)))
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSent))
	if err != nil {
		return "", shell.Exit(shell.ExitUsage, fmt.Sprintf("--cert %s: %v", name, shell.BareCause(err)))
	}
	var shown []byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			shown = append(shown, pem.EncodeToMemory(block)...)
		}
	}
	if len(shown) == 0 {
		return "", shell.Exit(shell.ExitUsage, fmt.Sprintf("--cert %s: holds no certificate in PEM form", name))
	}
	return string(shown), nil
}

// timeForms are formats of times in the local zone.
var timeForms = []string{"2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// momentOf parses a time, or a duration from now, and returns it as RFC 3339: "" for "".
func momentOf(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	if text[0] == '+' || text[0] == '-' {
		away, err := time.ParseDuration(text)
		if err != nil {
			return "", fmt.Errorf("%q is no span of time; want one such as +36h or -15m", text)
		}
		return now.Add(away).UTC().Format(time.RFC3339), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC().Format(time.RFC3339Nano), nil
	}
	for _, form := range timeForms {
		if at, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return at.UTC().Format(time.RFC3339), nil
		}
	}
	return "", fmt.Errorf("%q is no time; want one such as 2030-01-02T15:04:05Z, \"2030-01-02 15:04\", +36h or -15m", text)
}
