package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/testenv/golden"
)

// codedError is an error with an exit code.
type codedError struct{ code int }

func (e codedError) Error() string { return fmt.Sprintf("no postgres found (code %d)", e.code) }
func (e codedError) ExitCode() int { return e.code }

// said records the calls of a command line.
type said struct{ calls []string }

// commands returns commands that record how they are called and return err.
func (s *said) commands(err error) Commands {
	serve := func(name string) func(context.Context, *config.Config, Options) error {
		return func(_ context.Context, cfg *config.Config, o Options) error {
			s.calls = append(s.calls, fmt.Sprintf("%s listen=%s admin=%s apps=%q policies=%q admin_url=%q group=%s data=%s db=%v level=%s format=%s demo=%v quiet=%v",
				name, cfg.Gateway.Listen, cfg.Admin.Listen, cfg.Gateway.AppsDir, cfg.Gateway.PoliciesFile, cfg.Gateway.AdminURL, cfg.Gateway.Group,
				cfg.DataDir, !cfg.Database.URL.Empty(), cfg.Log.Level, cfg.Log.Format, o.Demo, o.Quiet))
			return err
		}
	}
	migrations := []Migration{{1, "first", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, {2, "second", time.Time{}}}
	return Commands{
		Up: serve("up"), Gateway: serve("gateway"), Admin: serve("admin"),
		MigrateStatus: func(context.Context, *config.Config) ([]Migration, error) { return migrations, err },
		MigrateUp: func(_ context.Context, cfg *config.Config) ([]Migration, error) {
			if strings.Contains(cfg.Database.URL.Reveal(), "current") {
				return nil, err
			}
			return migrations[:1], err
		},
	}
}

// run executes a command line and records its output and exit code.
func run(line string, env []string, commandErr error) string {
	var out, stderr bytes.Buffer
	s := &said{}
	code := Run(context.Background(), Process{
		Args: strings.Fields(line), Env: append([]string{"SLUICE_DATA_DIR=/data"}, env...), Stdin: strings.NewReader(""),
		Stdout: &out, Stderr: &stderr, Commands: s.commands(commandErr),
	})
	var b strings.Builder
	fmt.Fprintf(&b, "$ sluice %s\nexit %d\n", line, code)
	for _, part := range []struct{ name, text string }{{"call", strings.Join(s.calls, "\n")}, {"stdout", out.String()}, {"stderr", stderr.String()}} {
		for l := range strings.SplitSeq(strings.TrimSuffix(part.text, "\n"), "\n") {
			if part.text != "" {
				fmt.Fprintf(&b, "%s| %s\n", part.name, strings.TrimRight(l, " "))
			}
		}
	}
	return b.String() + "\n"
}

func TestCommandLines(t *testing.T) {
	db := []string{"SLUICE_DATABASE_URL=postgres://u:hunter2@h/d"}
	var all strings.Builder
	for _, c := range []struct {
		line string
		env  []string
		err  error
	}{
		{line: "up"},
		{line: "up --demo -q --data-dir /d --listen :1 --admin-listen 127.0.0.1:2 --log-level debug --log-format text"},
		{line: "--config testdata/sluice.yaml up --listen :1"},
		{line: "up --config testdata/sluice.yaml --config testdata/over.yaml"},
		{line: "up --config testdata/missing.yaml"},
		{line: "up --listen 8080 --log-level loud"},
		{line: "up --lisen :1"},
		{line: "up --listen"},
		{line: "up --unheard-of"},
		{line: "up now"},
		{line: "up -x"},
		{line: "up -o xml"},
		{line: "up", env: []string{"SLUICE_GATEWAY_LISTN=:1"}},
		{line: "up", err: errors.New("starting: broken")},
		{line: "up", err: fmt.Errorf("starting: %w", codedError{shell.ExitMissing})},
		{line: "up", err: fmt.Errorf("starting: %w", codedError{shell.ExitRunning})},
		{line: "gateway --apps a --policies p.json --group g --listen :1"},
		{line: "gateway --admin-url https://admin:8081", env: []string{"SLUICE_GATEWAY_TOKEN=hunter2-hunter2-hunter2"}},
		{line: "gateway --admin-url https://admin:8081"},
		{line: "gateway"},
		{line: "admin --listen 127.0.0.1:5 --database-url postgres://h/d"},
		{line: "admin", env: db},
		{line: "admin"},
		{line: "migrate"},
		{line: "migrate stat"},
		{line: "migrate status", env: db},
		{line: "migrate status -o json", env: db},
		{line: "migrate status -o yaml", env: db},
		{line: "migrate status"},
		{line: "migrate status", env: db, err: codedError{shell.ExitUnreachable}},
		{line: "migrate up --database-url postgres://h/d"},
		{line: "migrate up --database-url postgres://h/current"},
		{line: "migrate up -q --database-url postgres://h/current"},
		{line: "migrate up -o json --database-url postgres://h/current"},
		{line: "migrate up", env: db, err: codedError{shell.ExitFailed}},
		{line: "config"},
		{line: "config check"},
		{line: "config check -q"},
		{line: "config check --for gateway"},
		{line: "config check --for nothing"},
		{line: "config check --config testdata/wrong.yaml"},
		{line: "gatway"},
		{line: "frobnicate"},
		{line: "completion"},
		{line: "completion tcsh"},
		{line: "validate"},
	} {
		all.WriteString(run(c.line, c.env, c.err))
	}
	if strings.Contains(all.String(), "hunter2") {
		t.Error("a secret was printed")
	}
	golden.Equal(t, "commands.golden", all.String())
}

func TestHelp(t *testing.T) {
	var all strings.Builder
	for _, line := range []string{"", "up --help", "gateway -h", "help admin", "migrate --help", "migrate up --help", "validate --help", "config --help", "config check --help", "config print --help"} {
		all.WriteString(run(line, nil, nil))
	}
	golden.Equal(t, "help.golden", all.String())
}

// The reference and the schemas need no configuration and no server.
func TestDefinitionsAreLookedUp(t *testing.T) {
	for line, wants := range map[string][]string{
		"definition reference proxy.ejection.seconds":             {"exit 0", "number (seconds)", "0.1 to 3600", "first release", "example  30"},
		"definition reference PROXY.target_list.url":              {"exit 0", "proxy.target_list[].url of api"},
		"definition reference policy":                             {"exit 0", "KIND", "quota_renewal_calendar", "hour, day, week, month"},
		"definition reference portal entry.auth_type -o json":     {"exit 0", `"path": "entry.auth_type"`, `"range": "authToken, basic, oauth"`},
		"definition reference key monitor.trigger_limits -o yaml": {"exit 0", `path: "monitor.trigger_limits"`, `unit: "percent"`},
		"definition reference api CORS --markdown":                {"exit 0", "| `CORS.max_age` | integer (seconds) |"},
		"definition reference proxy.target_ulr":                   {"exit 2", "did you mean proxy.target_url?"},
		"definition reference target_url":                         {"exit 2", "there is proxy.target_url"},
		"definition reference apis proxy":                         {"exit 2", `"apis" is no kind of object; want api, policy, key, portal`},
		"schema policy":                                           {"exit 0", "https://json-schema.org/draft/2020-12/schema", `"throttle_retry_limit"`},
		"schema key --strict":                                     {"exit 0", `"additionalProperties": false`},
		"schema portal":                                           {"exit 2", "want api, policy, key"},
		"schema":                                                  {"exit 2", "want one kind: api, policy or key"},
	} {
		got := run(line, nil, nil)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%q lacks %q:\n%.400s", line, want, got)
			}
		}
	}
}

func TestConfigIsPrintedInEveryForm(t *testing.T) {
	env := []string{"SLUICE_SECRET=hunter2-hunter2-hunter2", "SLUICE_GATEWAY_LISTEN=:9"}
	var all strings.Builder
	for _, form := range shell.Outputs {
		text := run("config print --log-level warn --config testdata/sluice.yaml -o "+form, env, nil)
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.Contains(line, "default") { // those are golden in package config
				all.WriteString(line + "\n")
			}
		}
	}
	if strings.Contains(all.String(), "hunter2") {
		t.Error("a secret was printed")
	}
	golden.Equal(t, "config.golden", all.String())
	if text := run("config reference", nil, nil); !strings.Contains(text, "exit 0\nstdout| # Configuration") {
		t.Errorf("the reference: %.200s", text)
	}
}

func TestValidation(t *testing.T) {
	t.Chdir("testdata")
	var all strings.Builder
	for _, line := range []string{
		"validate good policies.json", "validate -q good", "validate good/orders.json -o json", "validate bad", "validate -o yaml bad/cut.json", "validate good bad/orders.json",
		"validate bad-policies.json", "validate odd odd-policies.json", "validate --strict odd odd-policies.json", "validate --strict -o json odd",
		"validate --strict bad/cut.json odd", "validate empty-of-apis", "validate good nowhere", "validate good/notes.txt", "validate good good", "validate graphs",
	} {
		all.WriteString(run(line, nil, nil))
	}
	t.Chdir("..")
	golden.Equal(t, "validate.golden", all.String())
}

func TestValidationOfFilesThatAreTooLargeOrMarked(t *testing.T) {
	dir := t.TempDir()
	large, marked := filepath.Join(dir, "large.json"), filepath.Join(dir, "marked.json")
	good, err := os.ReadFile("testdata/good/orders.json")
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{large: append(good, bytes.Repeat([]byte(" "), 4<<20)...), marked: append([]byte("\xef\xbb\xbf"), good...)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text := run("validate "+marked, nil, nil); !strings.Contains(text, "exit 0") {
		t.Errorf("with a byte order mark: %s", text)
	}
	if text := run("validate "+large, nil, nil); !strings.Contains(text, "exit 6") || !strings.Contains(text, "large.json: is larger than 4 MiB") {
		t.Errorf("too large: %s", text)
	}
	if text := run("validate "+marked+" "+dir, nil, nil); !strings.Contains(text, "exit 6") {
		t.Errorf("file and folder: %s", text)
	}
}

func TestAStopThatWasAskedForIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	skip := make(chan struct{})
	var stderr bytes.Buffer
	code := Run(ctx, Process{
		Args: []string{"up"}, Env: []string{"SLUICE_DATA_DIR=/data"}, Stdout: io.Discard, Stderr: &stderr, SkipDrain: skip,
		Commands: Commands{Up: func(ctx context.Context, _ *config.Config, o Options) error {
			if o.SkipDrain != (<-chan struct{})(skip) {
				t.Error("the command does not learn of the second signal")
			}
			cancel()
			<-ctx.Done()
			return fmt.Errorf("serving: %w", ctx.Err())
		}},
	})
	if code != shell.ExitOK || stderr.Len() > 0 {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}

func TestAFailureWhileStoppingIsAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stderr bytes.Buffer
	code := Run(ctx, Process{
		Args: []string{"up"}, Env: []string{"SLUICE_DATA_DIR=/data"}, Stdout: io.Discard, Stderr: &stderr,
		Commands: Commands{Up: func(context.Context, *config.Config, Options) error { return errors.New("the database did not stop") }},
	})
	if code != shell.ExitFailed || stderr.String() != "sluice: the database did not stop\n" {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}

func TestTheCodeOfAChildProcessIsNotOurs(t *testing.T) {
	child := exec.Command("sh", "-c", "exit 4").Run()
	if code := shell.ExitCode(fmt.Errorf("initdb: %w", child)); code != shell.ExitFailed {
		t.Errorf("exit %d, want %d", code, shell.ExitFailed)
	}
	if code := shell.ExitCode(fmt.Errorf("x: %w", codedError{shell.ExitRunning})); code != shell.ExitRunning {
		t.Errorf("exit %d, want %d", code, shell.ExitRunning)
	}
}

func TestVersionTellsWhatIsKnownOfTheBuild(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-11-28T01:02:03Z"}}}
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{{info, "v0.1.0 abc true 2026-11-28T01:02:03Z"}, {nil, "unknown unknown false unknown"}} {
		cells := versionRows(c.info).Cells[0]
		if got := fmt.Sprint(cells[0], " ", cells[1], " ", cells[2], " ", cells[5]); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	for line, want := range map[string]string{"version": "stdout| VERSION", "version -o json": `stdout| {"version": "`, "version -o yaml": `stdout| version: "`, "--version": "stdout| sluice "} {
		if text := run(line, nil, nil); !strings.Contains(text, "exit 0\n"+want) {
			t.Errorf("%s: %s", line, text)
		}
	}
}

func TestCompletionScriptsExist(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if text := run("completion "+shell, nil, nil); !strings.Contains(text, "exit 0") || len(text) < 1000 {
			t.Errorf("%s: %.300s", shell, text)
		}
	}
}

func TestFlagsCompleteTheirValues(t *testing.T) {
	for args, want := range map[string]string{
		"version -o ":         "stdout| table\nstdout| json\nstdout| yaml\nstdout| :4",
		"up --log-level ":     "stdout| warn",
		"config check --for ": "stdout| gateway",
		"gateway --apps ":     "stdout| :16",
		"gateway --policies ": "stdout| json\nstdout| :8",
		"up --config ":        "stdout| yaml\nstdout| yml\nstdout| :8",
		"migrate ":            "stdout| status",
	} {
		var out bytes.Buffer
		fields := append([]string{"__complete"}, strings.Split(args, " ")...)
		code := Run(context.Background(), Process{Args: fields, Stdout: &out, Stderr: io.Discard})
		got := "stdout| " + strings.ReplaceAll(out.String(), "\n", "\nstdout| ")
		if code != shell.ExitOK || !strings.Contains(got, want) {
			t.Errorf("%s: exit %d, %s", args, code, got)
		}
	}
}

// brokenPipe is a standard output without a reader.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, line := range []string{"version", "config print", "config reference", "config check", "validate testdata/good", "validate testdata/bad"} {
		var stderr bytes.Buffer
		code := Run(context.Background(), Process{Args: strings.Fields(line), Stdout: brokenPipe{}, Stderr: &stderr})
		if code != shell.ExitFailed || !strings.Contains(stderr.String(), "writing to standard output") {
			t.Errorf("%s: exit %d, %s", line, code, stderr.String())
		}
	}
}
