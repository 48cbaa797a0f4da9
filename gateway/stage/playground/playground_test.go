package playground

import (
	"bytes"
	"strings"
	"testing"
)

// maxScript is how large the script may be as it is sent, in bytes.
const maxScript = 200 << 10

func TestTheScriptIsSmallAndWhole(t *testing.T) {
	if len(packed) > maxScript {
		t.Errorf("the script has %d bytes, and %d are allowed", len(packed), maxScript)
	}
	script := unpacked()
	if len(script) < len(packed) || !bytes.Contains(script, []byte("playground")) {
		t.Errorf("the script has %d bytes unpacked", len(script))
	}
	for _, wrong := range []string{"eval(", "new Function", "https://cdn", "sourceMappingURL"} {
		if strings.Contains(string(script), wrong) {
			t.Errorf("the script has %q", wrong)
		}
	}
}
