package secret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"SET": planted, "EMPTY": ""}[name]
	return v, ok
}

func TestReferencesResolve(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"bare", planted, planted},
		{"with a line end", planted + "\n", planted},
		{"with a Windows line end", planted + "\r\n", planted},
		{"with two lines", "a\nb\n", "a\nb"},
		{"with two line ends", "a\n\n", "a\n"},
	} {
		t.Run("file "+c.name, func(t *testing.T) {
			v, err := Reference{File: write(t, c.content, 0o644)}.Resolve(lookup)
			if err != nil || v.Reveal() != c.want {
				t.Errorf("got %q, %v, want %q", v.Reveal(), err, c.want)
			}
		})
	}
	if v, err := (Reference{Env: "SET"}).Resolve(lookup); err != nil || v.Reveal() != planted {
		t.Errorf("env: got %q, %v", v.Reveal(), err)
	}
}

func TestReferencesThatDoNotResolveSayWhy(t *testing.T) {
	large := write(t, strings.Repeat(planted, maxFile/len(planted)+1), 0o600)
	empty := write(t, "\n", 0o600)
	for _, c := range []struct {
		name string
		ref  Reference
		want string
	}{
		{"unset", Reference{Env: "UNSET"}, "environment variable UNSET is not set"},
		{"empty variable", Reference{Env: "EMPTY"}, "environment variable EMPTY is empty"},
		{"no file", Reference{File: "/no/such/file"}, "reading a secret: open /no/such/file: no such file or directory"},
		{"a directory", Reference{File: "/"}, "reading a secret: read /: is a directory"},
		{"empty file", Reference{File: empty}, "secret file " + empty + " is empty"},
		{"large file", Reference{File: large}, "secret file " + large + " is larger than 64 KiB"},
		{"neither", Reference{}, "secret reference: want exactly one of env and file, not empty"},
		{"both", Reference{Env: "SET", File: empty}, "secret reference: want exactly one of env and file, not empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := c.ref.Resolve(lookup)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if !v.Empty() {
				t.Error("a value came with the error")
			}
		})
	}
}
