package rest

import (
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/store"
)

// RowCounts is what every list of rows says beside them.
type RowCounts struct {
	// Number of objects on all pages, at most 10000.
	Total int64 `json:"total"`
	// Whether there are more objects.
	Capped bool `json:"total_capped"`
	// Number of pages of total; later pages can be asked for as well.
	Pages int64 `json:"pages"`
}

// RowCountsOf returns the counts of a list.
func RowCountsOf(total int64, page store.Page) RowCounts {
	most := min(total, store.MostCounted)
	return RowCounts{Total: most, Capped: total > most, Pages: Pages(most, page)}
}

// WantsRows reports whether a call asks a list for rows. Parameters that filter rows alone
// are refused otherwise, not ignored.
func WantsRows(c *Call, only ...string) (bool, error) {
	switch view := c.Query("view"); view {
	case "row":
		return true, nil
	case "":
	default:
		return false, BadRequest(fmt.Sprintf("view must be row, or be left out, not %.40q", view))
	}
	for _, name := range only {
		if c.Query(name) != "" {
			return false, BadRequest(name + " needs view=row")
		}
	}
	return false, nil
}

// OneOf returns a query parameter that is one of some texts, or "" if it is left out.
func OneOf(c *Call, name string, texts ...string) (string, error) {
	text := c.Query(name)
	if text == "" || slices.Contains(texts, text) {
		return text, nil
	}
	return "", BadRequest(fmt.Sprintf("%s must be one of %v, not %.40q", name, texts, text))
}

// RowOrder returns the order of a list of rows that a call asks for.
func RowOrder(c *Call, names ...string) (string, error) {
	all := slices.Clone(names)
	for _, name := range names {
		all = append(all, "-"+name)
	}
	return OneOf(c, "sort", all...)
}

// RowPage reads the page and the order of a list of rows.
func RowPage(c *Call, names ...string) (page store.Page, order string, err error) {
	if page, err = c.Page(false); err == nil {
		order, err = RowOrder(c, names...)
	}
	return page, order, err
}
