package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
)

const phrase = "correct horse battery"

func saying(text string) func() (secret.Value, error) {
	return func() (secret.Value, error) { return secret.New(text), nil }
}

// unasked fails the test if the passphrase is asked for.
func unasked(t *testing.T) func() (secret.Value, error) {
	return func() (secret.Value, error) {
		t.Error("a passphrase was asked for")
		return secret.Value{}, nil
	}
}

// write makes an archive with a few parts, one of them a stream of some bytes.
func write(t testing.TB, passphrase string, long int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup")
	w, err := Create(path, secret.New(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("head", []byte("of it")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "long"} {
		s := w.Stream(name)
		if name == "long" {
			if _, err := s.Write(bytes.Repeat([]byte("0123456789"), long/10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Add("end", nil); err != nil {
		t.Fatal(err)
	}
	size, err := w.Commit()
	info, statErr := os.Stat(path)
	if err = errors.Join(err, statErr); err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %d bytes: %v", info, size, err)
	}
	return path
}

// read returns the names and lengths of the parts.
func read(path string, passphrase func() (secret.Value, error)) (parts string, err error) {
	r, err := Open(path, passphrase)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for {
		name, data, err := r.Next()
		if errors.Is(err, io.EOF) {
			if done, total := r.Progress(); done != total {
				return parts, fmt.Errorf("%d of %d bytes were read", done, total)
			}
			return parts, nil
		}
		if err != nil {
			return parts, err
		}
		parts += fmt.Sprintf("%s:%d ", name, len(data))
	}
}

const longBytes = 2*pieceSize + 500_008 // a multiple of 10

func TestPartsAreReadAsTheyWereWritten(t *testing.T) {
	want := fmt.Sprintf("head:5 long/000001:%d long/000002:%d long/000003:%d end:0 ", pieceSize, pieceSize, longBytes-2*pieceSize)
	for _, c := range []struct {
		passphrase string
		ask        func() (secret.Value, error)
	}{{"", unasked(t)}, {phrase, saying(phrase)}} {
		path := write(t, c.passphrase, longBytes)
		if got, err := read(path, c.ask); got != want || err != nil {
			t.Errorf("passphrase %q: %s, %v", c.passphrase, got, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("files left behind: %v", left)
		}
		if content, err := os.ReadFile(path); err != nil || c.passphrase != "" && bytes.Contains(content, []byte("head")) {
			t.Errorf("the encrypted file shows a name: %v", err)
		}
	}
}

func TestAnArchiveInClearIsReadByOtherTools(t *testing.T) {
	path, dir := write(t, "", longBytes), t.TempDir()
	unpack := exec.Command("sh", "-c", `tar -xzf "$1" -C "$2" && cd "$2" && sha256sum -c --quiet SHA256SUMS`, "sh", path, dir)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestDamageIsFound(t *testing.T) {
	for _, passphrase := range []string{"", phrase} {
		path := write(t, passphrase, 200_000)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := filepath.Join(t.TempDir(), "damaged")
		try := func(what string, content []byte) {
			t.Helper()
			if err := os.WriteFile(damaged, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := read(damaged, saying(phrase)); err == nil {
				t.Errorf("passphrase %q, %s: read as %s", passphrase, what, got)
			}
		}
		for _, at := range []int{0, 20, 30, 45, len(whole) / 2, len(whole) - 9} {
			changed := bytes.Clone(whole)
			changed[at] ^= 0x10
			if passphrase == "" && at < 30 {
				continue // the head of gzip has a time that nobody needs
			}
			try(fmt.Sprintf("byte %d changed", at), changed)
		}
		for _, length := range []int{0, 5, 17, headSize, headSize + 10, len(whole) / 2, len(whole) - 1} {
			try(fmt.Sprintf("cut to %d bytes", length), whole[:length])
		}
	}
}

// A file that ends after one of its pieces is not taken for a shorter one.
func TestALastPieceCannotBeCutOff(t *testing.T) {
	var sealed bytes.Buffer
	s, err := newSealer(&sealed, secret.New(phrase))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Write(make([]byte, 3*sealedPiece))
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	open := func(content []byte) (int, error) {
		o, err := newOpener(bytes.NewReader(content[len(sealMagic):]), secret.New(phrase))
		if err != nil {
			return 0, err
		}
		plain, err := io.ReadAll(o)
		return len(plain), err
	}
	if n, err := open(sealed.Bytes()); n != 3*sealedPiece || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	piece := sealedPiece + tagSize
	for pieces := range 3 {
		if n, err := open(sealed.Bytes()[:headSize+pieces*piece]); err == nil {
			t.Errorf("cut to %d pieces: %d bytes", pieces, n)
		}
	}
	swapped := bytes.Clone(sealed.Bytes())
	copy(swapped[headSize:], sealed.Bytes()[headSize+piece:headSize+2*piece])
	if n, err := open(swapped); err == nil {
		t.Errorf("with the second piece twice: %d bytes", n)
	}
}

func TestWrongFilesAndPassphrasesAreRefused(t *testing.T) {
	if _, err := read(write(t, phrase, 10), saying("another one")); !errors.Is(err, ErrPassphrase) {
		t.Errorf("another passphrase: %v", err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a backup\n", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(text, unasked(t)); !errors.Is(err, ErrNoArchive) || !strings.HasPrefix(err.Error(), text+": ") {
		t.Errorf("a text: %v", err)
	}
	greedy := append([]byte(sealMagic), bytes.Repeat([]byte{0xff}, 100)...)
	if err := os.WriteFile(text, greedy, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(text, saying(phrase)); !errors.Is(err, ErrNoArchive) {
		t.Errorf("a file that asks for 4 TiB of memory: %v", err)
	}
	if _, err := Create(text, secret.Value{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	w, err := Create(filepath.Join(t.TempDir(), "new"), secret.Value{})
	if err != nil {
		t.Fatal(err)
	}
	w.Discard()
	if left, _ := os.ReadDir(filepath.Dir(w.path)); len(left) != 0 {
		t.Errorf("a discarded file left %v", left)
	}
}

func FuzzOpen(f *testing.F) {
	for _, passphrase := range []string{"", phrase} {
		whole, err := os.ReadFile(write(f, passphrase, 100))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if bytes.HasPrefix(content, []byte(sealMagic)) && len(content) >= headSize {
			copy(content[headSize-8:], []byte{0, 0, 0, 8, 0, 0, 0, 1}) // a key that is derived quickly
		}
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = read(path, saying(phrase)) // whatever it is, it is read or refused
	})
}
