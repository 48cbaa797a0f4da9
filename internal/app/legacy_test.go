package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/keys"
)

func TestLegacyHashesAreReplacedOneAfterTheOther(t *testing.T) {
	var text strings.Builder
	l := newLegacyKeys(slog.New(slog.NewTextHandler(&text, nil)))
	ctx, end := context.WithCancel(t.Context())
	answers := []error{nil, keys.ErrNotFound, errors.New("away"), errors.New("still away"), nil}
	var asked []string
	l.strengthen = func(_ context.Context, identity string, hashes []string) (bool, error) {
		asked = append(asked, identity+" "+strings.Join(hashes, " "))
		if len(asked) == len(answers) {
			end()
		}
		return true, answers[len(asked)-1]
	}
	for _, identity := range []string{"a", "b", "c", "d", "e"} {
		l.noter()(identity, []string{"1", "2"})
	}
	l.run(ctx)
	if got := strings.Join(asked, ", "); got != "a 1 2, b 1 2, c 1 2, d 1 2, e 1 2" {
		t.Errorf("asked for %s", got)
	}
	if n := strings.Count(text.String(), "could not be replaced"); n != 1 || !strings.Contains(text.String(), "err=away") {
		t.Errorf("logged %d times:\n%s", n, text.String())
	}
}

func TestKeysThatAreFoundAtOnceBlockNobody(t *testing.T) {
	l := newLegacyKeys(slog.New(slog.DiscardHandler))
	for range 2 * legacyQueued {
		l.note("a", nil)
	}
	if n := len(l.found); n != legacyQueued {
		t.Errorf("%d wait", n)
	}
	if (*legacyKeys)(nil).noter() != nil {
		t.Error("keys are reported where there is nobody to replace their hashes")
	}
}
