// Package profile keeps which admins a user of this machine has logged in to, in
// a file that nobody else may read.
package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Profile is one admin and who calls it.
type Profile struct {
	Server string `json:"server"` // URL
	User   string `json:"user"`   // who the key belongs to, for people
	Key    string `json:"key"`    // access key: a secret
}

// Profiles is what the file holds.
type Profiles struct {
	Current string             `json:"current"` // name of the one that is used when none is named; "": none
	Named   map[string]Profile `json:"profiles"`
}

// ErrNoPlace says that the environment does not tell where the user's files are.
var ErrNoPlace = errors.New("neither XDG_CONFIG_HOME nor HOME says where your configuration is")

// Path returns where the file is: below $XDG_CONFIG_HOME, or ~/.config.
func Path(lookup func(name string) (string, bool)) (string, error) {
	if dir, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice", "profiles.json"), nil
	}
	home, _ := lookup("HOME")
	if !filepath.IsAbs(home) {
		return "", ErrNoPlace
	}
	return filepath.Join(home, ".config", "sluice", "profiles.json"), nil
}

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Read returns the profiles in a file; none when there is no such file. A file
// that others may read is refused: they may have the keys.
func Read(path string) (*Profiles, error) {
	none := &Profiles{Named: make(map[string]Profile)}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return nil, fmt.Errorf("reading profiles: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("reading profiles: %s is no file of profiles", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("reading profiles: %s has mode %04o, so others may read its keys: run chmod 600 %s, and log in with new keys if that was not intended", path, info.Mode().Perm(), path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading profiles: %w", err)
	}
	all := none
	if err := json.Unmarshal(data, all); err != nil || all.Named == nil {
		return nil, fmt.Errorf("reading profiles: %s is damaged; delete it and log in again", path)
	}
	return all, nil
}

// Write puts the profiles into a file that only its owner may read, whole or not
// at all.
func (p *Profiles) Write(path string) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("writing profiles: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing profiles: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".profiles.*") // with mode 0600
	if err != nil {
		return fmt.Errorf("writing profiles: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(append(data, '\n'))
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing profiles: %w", err)
	}
	return nil
}

// Names returns the names of all profiles, in order.
func (p *Profiles) Names() []string { return slices.Sorted(maps.Keys(p.Named)) }

// An UnknownError names a profile that is not there.
type UnknownError struct {
	Name string
	Have []string
}

// Error lists the profiles that are there.
func (e *UnknownError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("profile %q is not there: log in with sluice login --profile %s", e.Name, e.Name)
	}
	return fmt.Sprintf("profile %q is not there; there is %s", e.Name, strings.Join(e.Have, ", "))
}

// Find returns a profile by its name, the current one for "". Without a current
// one it returns nil.
func (p *Profiles) Find(name string) (*Profile, error) {
	if name == "" && p.Current == "" {
		return nil, nil
	}
	if name == "" {
		name = p.Current
	}
	one, ok := p.Named[name]
	if !ok {
		return nil, &UnknownError{name, p.Names()}
	}
	return &one, nil
}

// Of returns the profile of a server, the current one first, or nil.
func (p *Profiles) Of(server string) *Profile {
	for _, name := range append([]string{p.Current}, p.Names()...) {
		if one, ok := p.Named[name]; ok && Same(one.Server, server) {
			return &one
		}
	}
	return nil
}

// Same tells whether two URLs are those of one server.
func Same(a, b string) bool {
	return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}

// Remove forgets a profile. When it was the current one, another that is the only
// one left takes its place, and else none does.
func (p *Profiles) Remove(name string) {
	delete(p.Named, name)
	if p.Current != name {
		return
	}
	p.Current = ""
	if left := p.Names(); len(left) == 1 {
		p.Current = left[0]
	}
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName tells what is wrong with the name of a profile.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is no name of a profile: want at most 64 letters, digits, dots, dashes and underscores", name)
	}
	return nil
}
