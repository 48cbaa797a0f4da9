package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestScenariosUseAllKeysAndTokensOnce(t *testing.T) {
	s := scenario{words: map[string]string{"ADDR": "h:1", "PREFIX": "p_"}, rate: 10, long: 500 * time.Millisecond}
	out := string(expand("GET http://$ADDR/ $KEY $TOKEN\n", []string{"a", "b"}, s))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d targets, want 5", len(lines))
	}
	seen := make(map[string]bool)
	for i, line := range lines {
		fields := strings.Fields(line)
		if fields[1] != "http://h:1/" || fields[2] != []string{"a", "b"}[i%2] || !strings.HasPrefix(fields[3], "p_") || seen[fields[3]] {
			t.Errorf("target %d is %q", i, line)
		}
		seen[fields[3]] = true
	}
}

func TestContendersAreChosenByName(t *testing.T) {
	b := &bench{options: options{only: "Shared"}}
	var names []string
	for _, c := range b.chosen(b.contenders()) {
		names = append(names, c.name)
	}
	if got := strings.Join(names, "; "); got != "bare fasthttp; Sluice, the same with a shared store; Sluice, shared store, one hot key" {
		t.Errorf("chosen: %s", got)
	}
}

func TestNoConfigurationHasAHole(t *testing.T) {
	for _, keys := range []bool{false, true} {
		p := proxy{Dir: "/some/dir", Addr: "127.0.0.1:1", Origin: "127.0.0.1:2", Procs: 3, Keys: keys}
		for name, text := range map[string]string{"nginx": nginxConfig(p), "haproxy": haproxyConfig(p), "cosmo": cosmoConfig(p, "/graph")} {
			if strings.Contains(text, "%!") || !strings.Contains(text, p.Addr) {
				t.Errorf("%s, keys %v:\n%s", name, keys, text)
			}
			if known := strings.Contains(text, "/some/dir/keys"); known != keys && (name == "nginx" || name == "haproxy") {
				t.Errorf("%s, keys %v: reads keys %v", name, keys, known)
			}
		}
	}
}

// Installed programs validate their configurations.
func TestProgramsTakeTheirConfigurations(t *testing.T) {
	for _, keys := range []bool{false, true} {
		dir := t.TempDir()
		p := proxy{Dir: dir, Addr: "127.0.0.1:18099", Origin: "127.0.0.1:18098", Procs: 1, Keys: keys}
		if err := os.WriteFile(filepath.Join(dir, "keys"), []byte("abc plenty\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			program string
			text    string
			needs   []string
			args    []string
		}{
			{"/usr/sbin/nginx", nginxConfig(p), luaModules(), []string{"-t", "-p", ".", "-e", "stderr", "-c", "conf"}},
			{"/usr/sbin/haproxy", haproxyConfig(p), nil, []string{"-c", "-f", "conf"}},
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

func TestCoresAreSplit(t *testing.T) {
	for _, c := range []struct {
		cores, procs int
		want         string
	}{
		{1, 1, "[] 0 0"}, {2, 2, "[] 0 0"}, {2, 1, "[1] 0 0"}, {3, 1, "[2] 0 1"}, {8, 2, "[6 7] 0 1"}, {3, 2, "[1 2] 0 0"},
	} {
		contenders, client, upstream := coresOf(c.cores, c.procs)
		if got := fmt.Sprint(contenders, client, upstream); got != c.want {
			t.Errorf("%d cores, %d of them for contenders: %s, want %s", c.cores, c.procs, got, c.want)
		}
	}
}

func TestListsOfNumbers(t *testing.T) {
	for list, want := range map[string]string{"": "[]", "30": "[30]", "30,50,": "[30 50]", "x": "", "-1": "", "1.5": ""} {
		got, err := numbers("-shares", list)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v, want %s", list, got, err, want)
		}
	}
}
