package admin

import (
	"cmp"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/site"
)

// openSite makes the portal's pages, which are a client of the REST in this process.
func (s *Server) openSite() error {
	pages, err := site.New(site.Deps{
		Call: s.inside, PublicURL: cmp.Or(s.deps.Portal.PublicURL, "http://127.0.0.1"+site.Root),
		Gateway: s.deps.Portal.Gateway, Now: time.Now, Log: s.log,
	})
	if err != nil {
		return fmt.Errorf("opening the portal's pages: %w", err)
	}
	s.servePage = fasthttp.CompressHandlerLevel(pages.Handle, fasthttp.CompressDefaultCompression)
	return nil
}
