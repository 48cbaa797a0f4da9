package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxFile is the largest referenced file, in bytes.
const maxFile = 64 << 10

// A Reference names where a secret is, in place of the secret: {"env": "NAME"} or
// {"file": "PATH"}. Exactly one of the two is set.
type Reference struct {
	Env  string // name of an environment variable
	File string // path of a file, relative to the working directory
}

func (r Reference) check() error {
	if (r.Env == "") == (r.File == "") {
		return errors.New(`secret reference: want exactly one of env and file, not empty`)
	}
	return nil
}

// Resolve reads the secret. lookup is os.LookupEnv or a substitute. One line end after
// a file's content is removed. An unset variable, an unreadable file and an empty
// secret are errors; none of them quotes the content.
func (r Reference) Resolve(lookup func(name string) (string, bool)) (Value, error) {
	if err := r.check(); err != nil {
		return Value{}, err
	}
	if r.File != "" {
		return ReadFile(r.File)
	}
	content, ok := lookup(r.Env)
	if !ok {
		return Value{}, fmt.Errorf("environment variable %s is not set", r.Env)
	}
	if content == "" {
		return Value{}, fmt.Errorf("environment variable %s is empty", r.Env)
	}
	return New(content), nil
}

// ReadFile returns the content of a file of at most 64 KiB as a secret, without the
// line end that editors append. An empty file is an error. The file's mode is not
// checked: mounted secrets are commonly world-readable inside their container.
func ReadFile(path string) (Value, error) {
	f, err := os.Open(path)
	if err != nil {
		return Value{}, fmt.Errorf("reading a secret: %w", err)
	}
	defer f.Close()
	return readSecret(f, path)
}

func readSecret(f *os.File, path string) (Value, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Value{}, fmt.Errorf("reading a secret: %w", err)
	}
	if len(data) > maxFile {
		return Value{}, fmt.Errorf("secret file %s is larger than 64 KiB", path)
	}
	content := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if content == "" {
		return Value{}, fmt.Errorf("secret file %s is empty", path)
	}
	return New(content), nil
}
