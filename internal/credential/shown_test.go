package credential

import (
	"strings"
	"testing"
)

func TestAKeyInClearIsShownByAHash(t *testing.T) {
	clear, hashed := &Hasher{Algorithm: None}, &Hasher{}
	if got := clear.Shown("slk_key"); len(got) != 64 || strings.Contains(got, "key") || got != clear.Shown("slk_key") || got == clear.Shown("slk_other") {
		t.Errorf("shown %q", got)
	}
	for _, identity := range []string{"", OrgIdentity("one")} {
		if got := clear.Shown(identity); got != identity {
			t.Errorf("%q is shown as %q", identity, got)
		}
	}
	if got := hashed.Shown("abc"); got != "abc" {
		t.Errorf("a hash is shown as %q", got)
	}
}
