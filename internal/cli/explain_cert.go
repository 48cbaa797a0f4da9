package cli

import (
	"encoding/pem"
	"fmt"
	"io"
	"os"

	"github.com/sluicegate/sluice/internal/cli/shell"
)

// readCertificate reads the certificates in a PEM file. A private key that stands
// beside them stays where it is.
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
