package admin

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicegate/sluice/admin/store"
)

// maxPageSize is the most that one page holds.
const maxPageSize = 500

// page reads which part of a list a call asks for. Pages count from 1; 0 is the
// first as well. A negative page is the whole list, where whole says that the
// list can be given out so.
func (s *Server) page(c *call, whole bool) (store.Page, error) {
	size, err := c.number("page_size", s.deps.PageSize)
	if err != nil {
		return store.Page{}, err
	}
	number, err := c.number("p", 1)
	if err != nil {
		return store.Page{}, err
	}
	switch {
	case size < 1 || size > maxPageSize:
		return store.Page{}, badRequest(fmt.Sprintf("page_size must be in 1…%d, not %d", maxPageSize, size))
	case number < 0 && whole:
		return store.Page{}, nil
	case number < 0:
		return store.Page{}, badRequest("p must be a page from 1 on: this list is never given out whole")
	}
	return store.Page{Skip: (max(number, 1) - 1) * size, Max: size}, nil
}

// number reads a query parameter that is a whole number of at most nine digits.
func (c *call) number(name string, otherwise int) (int, error) {
	text := c.query(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > 999_999_999 || n < -999_999_999 {
		return 0, badRequest(fmt.Sprintf("%s must be a whole number, not %.40q", name, text))
	}
	return n, nil
}

// pages is how many pages a list of total objects has.
func pages(total int64, p store.Page) int64 {
	if p.Max <= 0 {
		return min(total, 1)
	}
	size := int64(p.Max)
	return (total + size - 1) / size
}

// sorts are the orders that lists of configuration know.
var sorts = []string{"name", "-name", "created_at", "-created_at", "updated_at", "-updated_at"}

// sort reads the order that a call asks for.
func (c *call) sort() (string, error) {
	order := c.query("sort")
	switch order {
	case "":
		return "name", nil
	case "created", "-created", "updated", "-updated":
		return order + "_at", nil
	}
	if !slices.Contains(sorts, order) {
		return "", badRequest(fmt.Sprintf("sort must be one of %v, not %.40q", sorts, order))
	}
	return order, nil
}
