package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent requests a fast shutdown of the server when this process dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// running reports whether pid is a process that is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	// "pid (name) state …"; the name may hold parentheses.
	_, after, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	return found && len(after) > 0 && after[0] != 'Z' && after[0] != 'X'
}

// serves reports whether pid is a running process of the server on our data.
func (s *Server) serves(pid int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(proc, "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "postgres" || !running(pid) {
		return false
	}
	data, err := os.Stat(s.layout.data)
	if err != nil {
		return false
	}
	// Compared as files and not as names, which differ between containers.
	cwd, err := os.Stat(filepath.Join(proc, "cwd"))
	if err == nil {
		return os.SameFile(cwd, data)
	}
	return errors.Is(err, fs.ErrPermission) && s.titled(proc)
}

// titled is used when the working directory is not readable, as for root in a container
// without CAP_SYS_PTRACE. The title of a postmaster has its arguments, that of its
// children the cluster's name. False positives are preferred to false negatives.
func (s *Server) titled(proc string) bool {
	if owner, ok := ownerOf(proc); !ok || owner != s.account.uid {
		return false
	}
	line, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	return err == nil && (bytes.HasPrefix(line, []byte("postgres: sluice:")) ||
		bytes.Contains(line, []byte("\x00"+s.layout.data+"\x00")))
}

// serverProcesses returns every process of the server on our data: each of them
// has the data directory as its working directory.
func (s *Server) serverProcesses() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && s.serves(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
