package load

import (
	"syscall"
	"time"
)

// punctual has the kernel wake this thread when it asked to be woken, not up to
// 50 µs later, until the function that it returns is called.
func punctual() (restore func()) {
	const setTimerSlack = 29
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0) // refused: latencies are as much longer, for all alike
	return func() { _, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 0, 0) }
}

// threadCPU is how long this thread has been on a processor.
func threadCPU() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	if err := syscall.Getrusage(thread, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
