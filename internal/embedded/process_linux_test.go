package embedded

import (
	"errors"
	"fmt"
	"os"
	"testing"
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
	for _, pid := range pids {
		if proc := fmt.Sprintf("/proc/%d", pid); !s.titled(proc) {
			line, _ := os.ReadFile(proc + "/cmdline")
			t.Errorf("process %d (%q) is not recognised", pid, line)
		}
	}
	if s.titled("/proc/self") {
		t.Error("this process is taken for the server")
	}
}
