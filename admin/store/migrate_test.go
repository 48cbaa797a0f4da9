package store_test

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestADatabaseOfANewerReleaseIsRefused(t *testing.T) {
	url := testenv.Postgres(t)
	if _, err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	exec(t, url, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	if applied, err := store.Migrate(t.Context(), url); applied != 0 || err == nil || !strings.Contains(err.Error(), "has migration 99999, and this program knows those up to") {
		t.Errorf("%d migrations are applied, %v", applied, err)
	}
}
