package conf

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoConfigurationHasAHole(t *testing.T) {
	for _, keys := range []bool{false, true} {
		p := Proxy{Dir: "/some/dir", Addr: "127.0.0.1:1", Origin: "127.0.0.1:2", Procs: 3, Keys: keys}
		for name, text := range map[string]string{"nginx": Nginx(p), "haproxy": HAProxy(p), "caddy": Caddy(p), "cosmo": Cosmo(p, "/graph")} {
			if strings.Contains(text, "%!") || !strings.Contains(text, p.Addr) {
				t.Errorf("%s, keys %v:\n%s", name, keys, text)
			}
			if known := strings.Contains(text, "/some/dir/keys"); known != keys && (name == "nginx" || name == "haproxy") {
				t.Errorf("%s, keys %v: reads keys %v", name, keys, known)
			}
		}
	}
}

// Who is installed here is asked for its opinion.
func TestProgramsTakeTheirConfigurations(t *testing.T) {
	for _, keys := range []bool{false, true} {
		dir := t.TempDir()
		p := Proxy{Dir: dir, Addr: "127.0.0.1:18099", Origin: "127.0.0.1:18098", Procs: 1, Keys: keys}
		if err := os.WriteFile(filepath.Join(dir, "keys"), []byte("abc plenty\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			program string
			text    string
			needs   []string
			args    []string
		}{
			{"/usr/sbin/nginx", Nginx(p), LuaModules(), []string{"-t", "-p", ".", "-e", "stderr", "-c", "conf"}},
			{"/usr/sbin/haproxy", HAProxy(p), nil, []string{"-c", "-f", "conf"}},
		} {
			if !all(c.program) || keys && !all(c.needs...) {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			check := exec.Command(c.program, c.args...)
			check.Dir = dir
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s, keys %v: %v\n%s", c.program, keys, err, out)
			}
		}
	}
}

func all(files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return false
		}
	}
	return true
}
