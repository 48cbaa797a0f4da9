package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }

// A reader has the program, and an installation of it that runs on this machine.
type reader struct {
	server    *rig.Server
	addresses map[string]string // host and port by the port in guides
}

// newReader starts what internal/docs/recipes/README.md starts.
func newReader(t *testing.T) *reader {
	t.Helper()
	encrypted := rig.FreeAddress(t)
	server := rig.NewUp(t, rig.DataDir(t), rig.Settings{
		"gateway.tls.listen": encrypted, "gateway.websockets": "true",
		"gateway.trusted_proxies": "127.0.0.1/32", "enforce_org_quotas": "true",
	}, "--demo").StartReady()
	return &reader{server, map[string]string{
		"8080": strings.TrimPrefix(server.Traffic, "http://"),
		"8081": strings.TrimPrefix(server.Admin, "http://"),
		"8443": encrypted,
	}}
}

// The commands of guides do what the guides show, pasted in their order into a shell in
// an empty directory. Those that cannot be run here are marked with the reason.
func TestGuidesCanBePasted(t *testing.T) {
	for _, program := range []string{"bash", "curl", "jq", "openssl", "python3", "nginx", "redis-server"} {
		testenv.Program(t, program)
	}
	paths, err := guides()
	if err != nil {
		t.Fatal(err)
	}
	all := newReader(t)
	followed, pasted, marked := 0, 0, 0
	for _, path := range paths {
		steps, err := readSteps(path)
		if err != nil {
			t.Error(err)
			continue
		}
		var run []step
		for _, s := range steps {
			if s.skip != "" {
				marked += s.lines()
				t.Logf("not run: %s:%d, %d lines: %s", path, s.line, s.lines(), s.skip)
				continue
			}
			pasted += s.lines()
			run = append(run, s)
		}
		if len(run) > 0 {
			followed++
			t.Run(path, func(t *testing.T) { all.paste(t, path, run) })
		}
	}
	t.Logf("%d lines of %d guides were pasted, %d lines are marked as not to be run here; %d guides have no commands to run", pasted, followed, marked, len(paths)-followed)
}

var (
	loopback = regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost):(8080|8081|8443|9\d{3})\b`)
	ownPort  = regexp.MustCompile(`\b9\d{3}\b`)
)

// here replaces the addresses and the directory of a default installation by those of r's.
func (r *reader) here(t *testing.T, ports map[string]string, text string) string {
	t.Helper()
	text = strings.ReplaceAll(text, "/var/lib/sluice", r.server.Settings["data_dir"])
	text = loopback.ReplaceAllStringFunc(text, func(found string) string {
		host, port, _ := strings.Cut(found, ":")
		if address := r.addresses[port]; address != "" {
			_, port, _ = strings.Cut(address, ":")
			return host + ":" + port
		}
		if ports[port] == "" {
			_, ports[port], _ = strings.Cut(rig.FreeAddress(t), ":")
		}
		return host + ":" + ports[port]
	})
	return ownPort.ReplaceAllStringFunc(text, func(port string) string {
		if ports[port] == "" {
			return port
		}
		return ports[port]
	})
}

// pasteWithin bounds the commands of one guide.
const pasteWithin = 4 * time.Minute

// paste runs the steps in one shell.
func (r *reader) paste(t *testing.T, path string, steps []step) {
	dir := rig.DataDir(t) // not t.TempDir, which the user of a private PostgreSQL cannot enter
	ports := make(map[string]string)
	for _, s := range steps { // finds the guide's own ports, which may stand alone earlier
		r.here(t, ports, s.commands)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o711))
	must(os.Symlink(rig.Binary(t), filepath.Join(dir, "sluice")))
	must(os.Mkdir(filepath.Join(dir, ".paste"), 0o700))
	must(os.WriteFile(filepath.Join(dir, ".paste", "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o700)) // files of this installation are the test's
	var script strings.Builder
	script.WriteString("shopt -s expand_aliases\ntrap 'jobs -p | xargs -r kill' EXIT\n")
	for i, s := range steps {
		must(os.WriteFile(filepath.Join(dir, ".paste", fmt.Sprint(i)), []byte(r.here(t, ports, s.commands)), 0o600))
		fmt.Fprintf(&script, "trap 'echo \"$BASH_COMMAND\" >> .paste/%d.failed' ERR\n. .paste/%d > .paste/%d.out 2>&1 < /dev/null\ntrap - ERR\n", i, i, i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), pasteWithin)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = dir
	shell.Env = []string{
		"HOME=" + dir, "PATH=" + filepath.Join(dir, ".paste") + ":" + dir + ":" + os.Getenv("PATH"), "LC_ALL=C.UTF-8",
		"SLUICE_DATA_DIR=" + r.server.Settings["data_dir"], "SLUICE_ADMIN_LISTEN=" + r.addresses["8081"],
		"DATABASE_URL=" + testenv.Postgres(t),
	}
	shell.SysProcAttr = testenv.ChildAttr(syscall.SIGKILL)
	var said bytes.Buffer
	shell.Stdout, shell.Stderr = &said, &said
	if err := shell.Run(); err != nil && said.Len() > 0 {
		t.Errorf("the shell: %v: %s", err, said.String())
	}
	for i, s := range steps {
		r.compare(t, fmt.Sprintf("%s:%d", path, s.line), filepath.Join(dir, ".paste", fmt.Sprint(i)), r.here(t, ports, s.output))
	}
}

// compare fails the test unless the step whose files are at base printed what is shown.
func (r *reader) compare(t *testing.T, at, base, shown string) {
	t.Helper()
	printed, err := os.ReadFile(base + ".out")
	if err != nil {
		t.Errorf("%s: not reached: the shell ended before", at)
		return
	}
	if failed, err := os.ReadFile(base + ".failed"); err == nil {
		t.Errorf("%s: this fails: %sit printed:\n%s", at, failed, printed)
	} else if shown != "" && !matches(shown, string(printed)) {
		t.Errorf("%s: printed:\n%s\nthe guide shows:\n%s", at, tidy(string(printed)), tidy(shown))
	}
}
