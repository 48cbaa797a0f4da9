package content

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/portal/brand"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

const maxItems = 12

// Menu is what the head of every page of the portal leads to, beside the portal's own
// pages.
type Menu struct {
	// Id of the menu; empty: there is none yet. Filled in.
	ID string `json:"id,omitempty"`
	// Id of the organisation; ignored in a request.
	OrgID string `json:"org_id,omitempty"`
	// Items in their order, at most 12.
	Items []Item `json:"items" nullable:"false"`
}

// An Item leads to a page of the organisation's, or to an address.
type Item struct {
	// Text of the item, at most 80 bytes.
	Text string `json:"text"`
	// Path of a page of the organisation's; the item is left out while there is no such page, or while
	// it is hidden.
	Page string `json:"page,omitempty"`
	// Address in place of page: https, http or mailto, or a path of the portal.
	URL string `json:"url,omitempty"`
}

// ShownMenu is a menu without what leads nowhere.
type ShownMenu struct {
	// Items in their order, without those that lead to no page.
	Items []Item `json:"items" nullable:"false"`
}

func (s *Service) loadMenu(ctx context.Context, org string) (*Menu, int64, error) {
	found := new(Menu)
	id, version, err := s.load(ctx, org, store.PortalMenus, found)
	if found.Items == nil {
		found.Items = []Item{}
	}
	found.ID, found.OrgID = id, org
	return found, version, err
}

func (s *Service) getMenu(ctx context.Context, c *rest.Call) (any, error) {
	found, version, err := s.loadMenu(ctx, c.Who.Org)
	if err == nil && version > 0 {
		c.SetVersion(version)
	}
	return found, err
}

func (s *Service) postMenu(ctx context.Context, c *rest.Call) (any, error) {
	return s.saveMenu(ctx, c, true)
}

func (s *Service) putMenu(ctx context.Context, c *rest.Call) (any, error) {
	return s.saveMenu(ctx, c, false)
}

func (s *Service) saveMenu(ctx context.Context, c *rest.Call, fresh bool) (any, error) {
	var sent Menu
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if problems := sent.check(); problems != nil {
		return nil, refuse(problems)
	}
	if sent.Items == nil {
		sent.Items = []Item{}
	}
	return s.save(ctx, c, sending{kind: store.PortalMenus, id: sent.ID, value: &Menu{Items: sent.Items}, fresh: fresh})
}

// check returns the problems of a menu.
func (m *Menu) check() (problems []string) {
	if len(m.Items) > maxItems {
		return []string{fmt.Sprintf("items: are %d; at most %d are allowed", len(m.Items), maxItems)}
	}
	for i, item := range m.Items {
		at := fmt.Sprintf("items[%d]", i)
		link := brand.Link{Text: item.Text, URL: item.URL}
		switch {
		case (item.Page == "") == (item.URL == ""):
			problems = append(problems, at+": must have either page or url")
			continue
		case item.Page != "" && !pathForm.MatchString(item.Page):
			problems = append(problems, at+".page: must be the path of a page, such as terms-of-use")
		}
		if item.Page != "" {
			link.URL = "/"
		}
		if why := link.Problem(); why != "" {
			problems = append(problems, at+": "+why)
		}
	}
	return problems
}

func (s *Service) showMenu(ctx context.Context, c *rest.Call) (any, error) {
	org, err := s.visitor(ctx, c)
	if err != nil {
		return nil, err
	}
	menu, version, err := s.loadMenu(ctx, org)
	if err != nil || version == 0 {
		return &ShownMenu{Items: []Item{}}, err
	}
	shown := make(map[string]bool)
	if slices.ContainsFunc(menu.Items, func(i Item) bool { return i.Page != "" }) {
		pages, _, err := s.loadPages(ctx, org)
		if err != nil {
			return nil, err
		}
		for _, p := range pages.Pages {
			shown[p.Path] = !p.Hidden
		}
	}
	nowhere := func(i Item) bool { return i.Page != "" && !shown[i.Page] }
	return &ShownMenu{Items: slices.DeleteFunc(menu.Items, nowhere)}, nil
}
