package store

import (
	"context"
	"errors"
	"testing"
)

func TestPublishHooksRunInTheTransactionOfTheChange(t *testing.T) {
	s, url := fresh(t)
	var failure error
	var seen []ObjectChange
	s.OnPublish(func(ctx context.Context, by Author, c *Change) error {
		seen = append(seen, c.Made()...)
		if err := c.Tx().Audit(ctx, by, AuditEntry{Action: "noticed", Kind: "hook", ID: "h"}); err != nil {
			return err
		}
		return failure
	})
	publish := func(id string) error {
		_, err := s.Publish(t.Context(), by("one"), func(ctx context.Context, c *Change) error {
			return c.CreateAPI(ctx, simple(t, id, "/"+id))
		})
		return err
	}
	entries := func() int { return one[int](t, url, "select count(*)::int from audit_log where object_kind = 'hook'") }
	if err := publish("a"); err != nil || entries() != 1 {
		t.Errorf("error %v, %d entries by the hook, want one", err, entries())
	}
	if len(seen) != 1 || seen[0].ID != "a" || seen[0].Action != "created" {
		t.Errorf("the hook saw %+v", seen)
	}
	failure = errors.New("a failing hook")
	if err := publish("b"); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	if apis := one[int](t, url, "select count(*)::int from apis"); apis != 1 || entries() != 1 {
		t.Errorf("%d APIs and %d entries after a failed hook, want 1 and 1", apis, entries())
	}
}
