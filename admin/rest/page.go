package rest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicegate/sluice/admin/store"
)

// MaxPageSize is the most that one page holds.
const MaxPageSize = 500

// Page returns the part of a list that the call asks for. Pages count from 1, and 0 is
// the first as well. A negative page is the whole list, if whole permits it.
func (c *Call) Page(whole bool) (store.Page, error) {
	size, err := c.Number("page_size", c.PageSize)
	if err != nil {
		return store.Page{}, err
	}
	number, err := c.Number("p", 1)
	if err != nil {
		return store.Page{}, err
	}
	switch {
	case size < 1 || size > MaxPageSize:
		return store.Page{}, BadRequest(fmt.Sprintf("page_size must be in 1…%d, not %d", MaxPageSize, size))
	case number < 0 && whole:
		return store.Page{}, nil
	case number < 0:
		return store.Page{}, BadRequest("p must be a page from 1 on: this list is never given out whole")
	}
	return store.Page{Skip: (max(number, 1) - 1) * size, Max: size}, nil
}

// Number returns a query parameter that is a whole number of at most nine digits.
func (c *Call) Number(name string, otherwise int) (int, error) {
	text := c.Query(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > 999_999_999 || n < -999_999_999 {
		return 0, BadRequest(fmt.Sprintf("%s must be a whole number, not %.40q", name, text))
	}
	return n, nil
}

// Pages returns the number of pages of a list of total objects.
func Pages(total int64, p store.Page) int64 {
	if p.Max <= 0 {
		return min(total, 1)
	}
	size := int64(p.Max)
	return (total + size - 1) / size
}

// sorts are the orders of lists of configuration.
var sorts = []string{"name", "-name", "created_at", "-created_at", "updated_at", "-updated_at"}

// Sort returns the order that a call asks for.
func (c *Call) Sort() (string, error) {
	order := c.Query("sort")
	switch order {
	case "":
		return "name", nil
	case "created", "-created", "updated", "-updated":
		return order + "_at", nil
	}
	if !slices.Contains(sorts, order) {
		return "", BadRequest(fmt.Sprintf("sort must be one of %v, not %.40q", sorts, order))
	}
	return order, nil
}
