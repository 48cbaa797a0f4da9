package secret

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestKeepFileMakesTheFileOnceAndKeepsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.key")
	v, created, err := KeepFile(path, func() string { return planted })
	if err != nil || !created || v.Reveal() != planted {
		t.Fatalf("first: %q, %v, %v", v.Reveal(), created, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	v, created, err = KeepFile(path, func() string { t.Error("made again"); return "other" })
	if err != nil || created || v.Reveal() != planted {
		t.Errorf("second: %q, %v, %v", v.Reveal(), created, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("files left behind: %v", left)
	}
}

func TestKeepFileOfManyAtOnceAgreesOnOneSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	const many = 16
	values, makers := make([]string, many), make([]bool, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			v, created, err := KeepFile(path, func() string { return NewKey().Text().Reveal() })
			if err != nil {
				t.Error(err)
			}
			values[i], makers[i] = v.Reveal(), created
		})
	}
	wg.Wait()
	made := 0
	for i := range many {
		if values[i] != values[0] || values[i] == "" {
			t.Errorf("process %d has %q, process 0 has %q", i, values[i], values[0])
		}
		if makers[i] {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d made the file, want 1", made)
	}
}

func TestKeepFileRefusesWhatOthersMayRead(t *testing.T) {
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o601, 0o777} {
		path := write(t, planted, mode)
		v, _, err := KeepFile(path, func() string { return "x" })
		if err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if !v.Empty() || err != nil && strings.Contains(err.Error(), planted) {
			t.Errorf("mode %04o: the secret came out", mode)
		}
	}
}

func TestKeepFileRefusesWhatIsNoFileOfASecret(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := write(t, "", 0o600)
	for path, want := range map[string]string{
		pipe:               "secret file " + pipe + " is not a regular file",
		empty:              "secret file " + empty + " is empty",
		"/no/such/dir/key": "making secret file: open /no/such/dir/.key.",
	} {
		if _, _, err := KeepFile(path, func() string { return "x" }); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s…", path, err, want)
		}
	}
	if _, _, err := KeepFile(filepath.Join(t.TempDir(), "k"), func() string { return "" }); err == nil {
		t.Error("an empty new secret was kept")
	}
}

func TestKeepFileRefusesASecretThatNoHeaderCanHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.key")
	if err := os.WriteFile(path, []byte(planted+"\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := KeepFile(path, func() string { return "other" })
	if err == nil || !strings.Contains(err.Error(), path+" has a line break") || strings.Contains(err.Error(), planted) {
		t.Errorf("%v, want an error that names the file", err)
	}
}
