package content

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/clean"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// Bounds of pages.
const (
	maxPages    = 100
	maxBody     = 64 << 10 // bytes of Markdown of one page
	maxAllPages = 2 << 20  // bytes of Markdown of all pages
	maxTitle    = 120
)

// Pages are what an organisation wrote for its portal.
type Pages struct {
	// Id of the whole set of pages, assigned by the server; empty before the first page is stored.
	ID string `json:"id,omitempty"`
	// Id of the organisation; ignored in a request.
	OrgID string `json:"org_id,omitempty"`
	// The pages, at most 100, with 2 MiB of text together.
	Pages []Page `json:"pages" nullable:"false"`
}

// A Page is one of them.
type Page struct {
	// Last part of the page's path /portal/pages/{path}: at most 64 bytes of small letters, digits and
	// hyphens.
	// Example: "getting-started"
	Path string `json:"path"`
	// Heading of the page, at most 120 bytes.
	Title string `json:"title"`
	// Markdown of the page, at most 64 KiB; HTML in it is left out.
	Body string `json:"body"`
	// Whether the page is a draft, which the portal does not show.
	Hidden bool `json:"hidden,omitempty"`
}

// ShownPage is a page as the portal shows it.
type ShownPage struct {
	// Last part of the page's path /portal/pages/{path}.
	Path string `json:"path"`
	// Heading of the page.
	Title string `json:"title"`
	// Text of the page as sanitised HTML.
	HTML string `json:"html"`
}

var pathForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$`)

func (s *Service) loadPages(ctx context.Context, org string) (*Pages, int64, error) {
	found := new(Pages)
	id, version, err := s.load(ctx, org, store.PortalPages, found)
	if found.Pages == nil {
		found.Pages = []Page{}
	}
	found.ID, found.OrgID = id, org
	return found, version, err
}

func (s *Service) getPages(ctx context.Context, c *rest.Call) (any, error) {
	found, version, err := s.loadPages(ctx, c.Who.Org)
	if err == nil && version > 0 {
		c.SetVersion(version)
	}
	return found, err
}

func (s *Service) postPages(ctx context.Context, c *rest.Call) (any, error) {
	return s.savePages(ctx, c, true)
}

func (s *Service) putPages(ctx context.Context, c *rest.Call) (any, error) {
	return s.savePages(ctx, c, false)
}

func (s *Service) savePages(ctx context.Context, c *rest.Call, fresh bool) (any, error) {
	var sent Pages
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if problems := sent.check(); problems != nil {
		return nil, refuse(problems)
	}
	if sent.Pages == nil {
		sent.Pages = []Page{}
	}
	return s.save(ctx, c, sending{kind: store.PortalPages, id: sent.ID, value: &Pages{Pages: sent.Pages}, fresh: fresh})
}

// check returns the problems of pages.
func (p *Pages) check() (problems []string) {
	add := func(path, format string, values ...any) {
		problems = append(problems, path+": "+fmt.Sprintf(format, values...))
	}
	if len(p.Pages) > maxPages {
		add("pages", "are %d; at most %d are allowed", len(p.Pages), maxPages)
		return problems
	}
	taken, size := make(map[string]bool), 0
	for i := range p.Pages {
		one, at := &p.Pages[i], fmt.Sprintf("pages[%d]", i)
		size += len(one.Body)
		if !pathForm.MatchString(one.Path) {
			add(at+".path", "must be 1 to 64 small letters, digits and hyphens, such as terms-of-use")
		} else if taken[one.Path] {
			add(at+".path", "%q is there already", one.Path)
		}
		taken[one.Path] = true
		if strings.TrimSpace(one.Title) == "" || len(one.Title) > maxTitle || !rest.Printable(one.Title) {
			add(at+".title", "must be printable text of 1 to %d bytes", maxTitle)
		}
		if len(one.Body) > maxBody {
			add(at+".body", "has %d bytes; at most %d are allowed", len(one.Body), maxBody)
		} else if _, err := asHTML(one.Body); err != nil {
			add(at+".body", "%s", err)
		}
	}
	if size > maxAllPages {
		add("pages", "have %d bytes of text together; at most %d are allowed", size, maxAllPages)
	}
	return problems
}

func (s *Service) showPage(ctx context.Context, c *rest.Call) (any, error) {
	org, err := s.visitor(ctx, c)
	if err != nil {
		return nil, err
	}
	found, _, err := s.loadPages(ctx, org)
	if err != nil {
		return nil, err
	}
	path := c.Param("path")
	for i := range found.Pages {
		if one := &found.Pages[i]; one.Path == path && !one.Hidden {
			text, err := asHTML(one.Body)
			return &ShownPage{Path: one.Path, Title: one.Title, HTML: text}, err
		}
	}
	return nil, rest.NotFound("There is no such page.")
}

// asHTML returns Markdown as sanitised HTML.
func asHTML(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return clean.Clean(clean.Markdown, text)
}
