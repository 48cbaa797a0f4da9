package observe

import (
	"strings"
	"testing"
)

func TestALineNamesTheTrace(t *testing.T) {
	ex := exchange("GET", "/a", 200)
	if _, there := lineOf(t, ex, 200)["trace"]; there {
		t.Error("a request that is in no trace names one")
	}
	copy(ex.Trace.ID[:], strings.Repeat("0af7", 8))
	if got := lineOf(t, ex, 200); got["trace"] != strings.Repeat("0af7", 8) || got["id"] == nil || got["method"] != "GET" {
		t.Errorf("logged %v", got)
	}
}
