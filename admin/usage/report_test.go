package usage

import (
	"strings"
	"testing"

	rows "github.com/sluicegate/sluice/admin/store/usage"
)

func TestTheErrorOfALargeQueryNamesAlternatives(t *testing.T) {
	key := "k"
	for says, q := range map[string]rows.Query{
		"More than 7 rows of keys would have to be added up; ask for a shorter time, or for one api": {By: rows.Grouping{Key: true}},
		"More than 7 rows of keys": {Key: &key},
		"More than 7 rows of APIs would have to be added up; ask for a shorter time, for one api, or without group_by=api": {By: rows.Grouping{API: true}},
	} {
		if err := tooMuch(&q, 7); !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
