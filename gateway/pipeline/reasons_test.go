package pipeline

import (
	"os"
	"regexp"
	"testing"
)

// TestTheManagementUIExplainsEveryReason compares the sentences of the UI with the reasons.
func TestTheManagementUIExplainsEveryReason(t *testing.T) {
	text, err := os.ReadFile("../../admin/ui/web/src/reasons.ts")
	if err != nil {
		t.Fatal(err)
	}
	explained := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)^  ([a-z_]+): \{ text: '`).FindAllSubmatch(text, -1) {
		explained[string(found[1])] = true
	}
	for _, reason := range Reasons() {
		if name := reason.String(); name != "" && !explained[name] {
			t.Errorf("%s has no sentence in reasons.ts", name)
		}
		delete(explained, reason.String())
	}
	for name := range explained {
		t.Errorf("reasons.ts explains %s, which is no reason", name)
	}
}
