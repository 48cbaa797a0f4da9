package disk

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// What the system is told and tells of asynchronous work on files
// (linux/aio_abi.h): struct iocb, and struct io_event.
type (
	request struct {
		_        uint64 // data
		_, _     uint32 // key and rw_flags, the order of which differs
		opcode   uint16
		_        int16 // reqprio
		file     uint32
		_, _     uint64 // buf and nbytes
		_        int64  // offset
		_        uint64 // reserved
		flags    uint32
		resultTo uint32
	}
	event struct {
		_      [2]uint64 // data and obj
		result int64
		_      int64 // result2
	}
)

const (
	opFsync      = 2 // IOCB_CMD_FSYNC, since Linux 4.18
	flagResultTo = 1 // IOCB_FLAG_RESFD
)

// queue has the system flush one file at a time (io_submit(2)), and waits for that as
// for a socket.
type queue struct {
	id      uintptr // io_context_t
	done    *os.File
	doneFD  uintptr
	request request
	list    [1]*request
	event   event
}

// newQueue returns nil where the system has none: an old one, or a container that may
// not.
func newQueue() *queue {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return nil
	}
	q := &queue{doneFD: fd, done: os.NewFile(fd, "eventfd")} // which does not block, so the poller takes it
	if _, _, errno := syscall.Syscall(syscall.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&q.id)), 0); errno != 0 {
		_ = q.done.Close() // nothing was written
		return nil
	}
	q.list[0] = &q.request
	runtime.AddCleanup(q, func(id uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_IO_DESTROY, id, 0, 0) }, q.id)
	return q
}

// sync flushes a file; done is false when it could not begin.
func (q *queue) sync(f *os.File) (done bool, err error) {
	if !q.submit(f) {
		return false, nil
	}
	var count [8]byte
	_, _ = q.done.Read(count[:]) // should that fail, wait waits
	return true, failure(f, q.wait())
}

func (q *queue) submit(f *os.File) (begun bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		q.request = request{opcode: opFsync, file: uint32(fd), flags: flagResultTo, resultTo: uint32(q.doneFD)}
		n, _, _ := syscall.Syscall(syscall.SYS_IO_SUBMIT, q.id, 1, uintptr(unsafe.Pointer(&q.list)))
		begun = n == 1
	})
	return err == nil && begun
}

// wait returns what came of the request that was submitted.
func (q *queue) wait() (result int64) {
	for {
		n, _, errno := syscall.Syscall6(syscall.SYS_IO_GETEVENTS, q.id, 1, 1, uintptr(unsafe.Pointer(&q.event)), 0, 0)
		switch {
		case n == 1 && errno == 0:
			return q.event.result
		case errno != 0 && errno != syscall.EINTR: // nothing told is no success
			return -int64(errno)
		}
	}
}

// failure is the error that a result stands for.
func failure(f *os.File, result int64) error {
	if result >= 0 {
		return nil
	}
	return &os.PathError{Op: "sync", Path: f.Name(), Err: syscall.Errno(-result)}
}
