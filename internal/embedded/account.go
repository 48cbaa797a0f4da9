package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// account is the system user that initdb and the server run as.
type account struct {
	name   string
	uid    int
	gid    int
	caller string // name of the user that this process runs as
	change bool   // this process is root and must switch to the account
}

// serverAccount chooses the user. PostgreSQL refuses to run as root, so root switches to
// the owner of existing data, else to postgres, else to nobody.
func serverAccount(data string) (account, error) {
	caller, err := user.Current()
	if err != nil {
		return account{}, &AccountError{UID: os.Geteuid(), Err: err}
	}
	if os.Geteuid() != 0 {
		return ownAccount(caller, data)
	}
	chosen, err := accountForRoot(data)
	if err != nil {
		return account{}, err
	}
	a, err := newAccount(chosen)
	a.caller, a.change = caller.Username, true
	return a, err
}

func newAccount(u *user.User) (account, error) {
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if err := errors.Join(errUID, errGID); err != nil {
		return account{}, fmt.Errorf("reading the ids of user %s: %w", u.Username, err)
	}
	return account{name: u.Username, uid: uid, gid: gid, caller: u.Username}, nil
}

// ownAccount returns the account of a caller that is not root: the caller's.
func ownAccount(caller *user.User, data string) (account, error) {
	a, err := newAccount(caller)
	if err != nil {
		return a, err
	}
	if owner, ok := ownerOf(data); ok && owner != a.uid {
		return a, fmt.Errorf("%s belongs to user id %d, but this process runs as %s (%d): run it as that user or as root, or set another postgres.data_dir",
			data, owner, a.name, a.uid)
	}
	return a, nil
}

// accountForRoot prefers the owner of existing data: a postgres user that was installed
// later could not read data of the user nobody.
func accountForRoot(data string) (*user.User, error) {
	if owner, ok := ownerOf(data); ok {
		if owner == 0 {
			return nil, fmt.Errorf("%s belongs to root, and PostgreSQL does not run as root: run chown -R postgres on it", data)
		}
		found, err := user.LookupId(strconv.Itoa(owner))
		if err != nil {
			return nil, &AccountError{UID: owner, Err: err}
		}
		return found, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			return found, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody to hand over to: add one, or run sluice as another user")
}

func ownerOf(path string) (uid int, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return infoOwner(info)
}

func infoOwner(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// own changes the owner of path to the account, if this process is root.
func (a account) own(path string) error {
	if !a.change {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// apply makes cmd run as the account, in its own process group because of Ctrl-C, without
// our environment, and in the root directory so that it blocks no unmount.
func (a account) apply(cmd *exec.Cmd) {
	cmd.Dir, cmd.Env = "/", serverEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if a.change {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// mayEnter returns a BlockedError if the account cannot reach dir, which exists. Mode
// bits identify the parent; because ACLs can grant what mode bits deny, access is then
// tried.
func (a account) mayEnter(dir string) error {
	parent := a.blockedAt(dir)
	if parent == "" || a.entered(dir) {
		return nil
	}
	return &BlockedError{Dir: dir, Parent: parent, User: a.name}
}

// blockedAt returns the uppermost directory on the path to dir, including dir, that mode
// bits close to the account, or "".
func (a account) blockedAt(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	blocked := ""
	for {
		if info, err := os.Stat(real); err == nil && !a.passes(info) {
			blocked = real
		}
		parent := filepath.Dir(real)
		if parent == real {
			return blocked
		}
		real = parent
	}
}

func (a account) passes(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || a.uid == 0 {
		return true
	}
	switch mode := info.Mode().Perm(); {
	case int(stat.Uid) == a.uid:
		return mode&0o100 != 0
	case int(stat.Gid) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// entered tries it: a child process switches its user first and then its directory.
func (a account) entered(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", ":")
	a.apply(cmd)
	cmd.Dir = dir
	_, err := runHere(cmd)
	return err == nil
}
