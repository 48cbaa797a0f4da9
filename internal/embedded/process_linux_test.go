package embedded

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// In a container, root may not look at other users' working directories. What
// stands in for these has to recognise the same processes.
func TestServerProcessesAreRecognisedByTheirTitlesToo(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "sluice-embedded-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := Start(t.Context(), Options{BaseDir: dir, SharedBuffers: "16MB", Disposable: true})
	if _, missing := errors.AsType[*MissingError](err); missing && os.Getenv("SLUICE_TEST_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(t.Context())
	pids, err := s.serverProcesses()
	if err != nil || len(pids) < 4 {
		t.Fatalf("processes %v, %v; want the postmaster and its children", pids, err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		// A child has no title before its first moments are over, nor after its end.
		proc := fmt.Sprintf("/proc/%d", pid)
		for ; !s.titled(proc) && s.serves(pid); <-tick.C {
			if time.Now().After(late) {
				line, _ := os.ReadFile(proc + "/cmdline")
				status, _ := os.ReadFile(proc + "/status")
				t.Fatalf("process %d (%q) is not recognised: %s", pid, line, status)
			}
		}
	}
	if s.titled("/proc/self") {
		t.Error("this process is taken for the server")
	}
}
