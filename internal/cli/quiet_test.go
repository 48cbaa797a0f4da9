package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/spf13/cobra"
)

// A script that creates something reads the one value that it needs from standard output.
func TestCommandsThatCreatePrintOneValueWithQuiet(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, []byte(testenv.NewAuthority(t, "ca").PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	const user, webhook = `{"Meta":"id","access_key":"wanted","Warnings":["w"]}`, `{"Message":"id","Meta":{"secret":"wanted"}}`
	commands := map[string]struct{ args, answer string }{
		"sluice cert add":                {pem, `{"ID":"wanted"}`},
		"sluice gateway key create":      {"edge-1", user},
		"sluice key create":              {"--policy gold", `{"key":"wanted","key_hash":"h","warnings":["w"]}`},
		"sluice key rotate":              {"k", `{"key":"wanted","key_hash":"h"}`},
		"sluice org create":              {"Acme", `{"Meta":"wanted"}`},
		"sluice portal catalogue add":    {"--name Orders", `{"Message":"wanted"}`},
		"sluice portal developer create": {"--email ann@example.com", `{"Message":"wanted"}`},
		"sluice portal webhook add":      {"--url https://example.com", webhook},
		"sluice portal webhook rotate":   {"id", webhook},
		"sluice request approve":         {"id", `{"RawKey":"wanted"}`},
		"sluice user create":             {"ann@example.com", user},
		"sluice user enter":              {"", `{"link":"wanted"}`},
		"sluice user reset-key":          {"id", user},
	}
	for path, c := range commands {
		answer = c.answer
		for _, form := range []string{"table", "json"} {
			var out, stderr bytes.Buffer
			args := slices.Concat(strings.Fields(path)[1:], strings.Fields(c.args), []string{"-q", "-o", form})
			env := []string{"HOME=" + t.TempDir(), "SLUICE_SERVER=" + server.URL, "SLUICE_TOKEN=sla_0123456789abcdef"}
			code := Run(context.Background(), Process{Args: args, Env: env, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &stderr})
			switch got := out.String(); {
			case code != 0, form == "table" && got != "wanted\n", form == "json" && !strings.HasPrefix(got, "{") && !strings.HasPrefix(got, "["):
				t.Errorf("%s as %s: code %d, %q, %s", path, form, code, got, &stderr)
			}
		}
	}
	s := &session{Shell: &shell.Shell{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	for _, path := range creating(s.rootCommand()) {
		if _, ok := commands[path]; !ok {
			t.Errorf("%s is not tested", path)
		}
	}
}

// creating returns the paths of the commands that create something.
func creating(cmd *cobra.Command) (paths []string) {
	for _, sub := range cmd.Commands() {
		paths = append(paths, creating(sub)...)
	}
	made := slices.Contains([]string{"create", "add", "rotate", "reset-key", "approve", "enter"}, cmd.Name())
	if path := cmd.CommandPath(); made && path != "sluice secrets rotate" { // which makes no secret
		paths = append(paths, path)
	}
	return paths
}
