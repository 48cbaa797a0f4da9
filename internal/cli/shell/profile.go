package shell

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

// A Profile is a login: an admin and a user of it.
type Profile struct {
	Server string `json:"server"` // URL
	User   string `json:"user"`   // owner of the key, for display
	Key    string `json:"key"`    // access key: a secret
	Trust

	name string // in Profiles, as Find and Of return it
}

// Profiles is the content of the file.
type Profiles struct {
	Current string             `json:"current"` // name of the default profile; "": none
	Named   map[string]Profile `json:"profiles"`
}

// errNoHome is returned if the environment has neither XDG_CONFIG_HOME nor HOME.
var errNoHome = errors.New("neither XDG_CONFIG_HOME nor HOME is set")

// ProfilePath returns the path of the file: below $XDG_CONFIG_HOME, or ~/.config.
func ProfilePath(lookup func(name string) (string, bool)) (string, error) {
	if dir, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice", "profiles.json"), nil
	}
	home, _ := lookup("HOME")
	if !filepath.IsAbs(home) {
		return "", errNoHome
	}
	return filepath.Join(home, ".config", "sluice", "profiles.json"), nil
}

// maxProfiles bounds the file, in bytes.
const maxProfiles = 1 << 20

// ReadProfiles returns the profiles in a file, none if it does not exist. A file that
// others may read is refused, because its keys may be compromised.
func ReadProfiles(path string) (*Profiles, error) {
	none := &Profiles{Named: make(map[string]Profile)}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return nil, fmt.Errorf("reading profiles: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxProfiles:
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

// Write writes the profiles to a file atomically, readable by its owner only.
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

// An UnknownProfileError names a profile that does not exist.
type UnknownProfileError struct {
	Name string
	Have []string
}

// Error lists the existing profiles.
func (e *UnknownProfileError) Error() string {
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
		return nil, &UnknownProfileError{name, p.Names()}
	}
	one.name = name
	return &one, nil
}

// Of returns the profile of a server, the current one first, or nil.
func (p *Profiles) Of(server string) *Profile {
	for _, name := range append([]string{p.Current}, p.Names()...) {
		if one, ok := p.Named[name]; ok && sameServer(one.Server, server) {
			one.name = name
			return &one
		}
	}
	return nil
}

// sameServer reports whether two URLs are of the same server.
func sameServer(a, b string) bool {
	return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}

// Remove deletes a profile. If it was the current one, the only one left becomes current,
// if there is exactly one.
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

var profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckProfileName validates the name of a profile.
func CheckProfileName(name string) error {
	if !profileName.MatchString(name) {
		return fmt.Errorf("%q is no name of a profile: want at most 64 letters, digits, dots, dashes and underscores", name)
	}
	return nil
}
