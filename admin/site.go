package admin

import (
	"cmp"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/admin/portal/site"
	"github.com/sluicegate/sluice/admin/rest"
)

// openSite makes the portal's pages, which are a client of the REST in this process.
func (s *Server) openSite() error {
	pages, err := site.New(site.Deps{
		Call: s.inside, PublicURL: cmp.Or(s.deps.Portal.PublicURL, "http://127.0.0.1"+site.Root),
		Gateway: s.deps.Portal.Gateway, Now: time.Now, Log: s.log, Playground: s.deps.Portal.Playground,
	})
	if err != nil {
		return fmt.Errorf("opening the portal's pages: %w", err)
	}
	s.servePage = fasthttp.CompressHandlerLevel(pages.Handle, fasthttp.CompressDefaultCompression)
	return nil
}

// servePortal answers a request to the admin for a page of the portal. A portal on a
// listener of its own is there alone, so that its pages and the admin have not one origin.
func (s *Server) servePortal(ctx *fasthttp.RequestCtx) {
	if !s.deps.Portal.Apart {
		s.servePage(ctx)
		return
	}
	ctx.Response.Header.Set(fasthttp.HeaderLocation, strings.TrimRight(s.deps.Portal.PublicURL, "/")+"/")
	ctx.SetStatusCode(fasthttp.StatusTemporaryRedirect)
}

// isPage reports whether the site answers a path. Messages of streams arrive below its root,
// as that is what proxies in front of a portal pass on.
func isPage(path string) bool {
	return site.Has(path) && strings.TrimRight(path, "/") != portal.EventsPath
}

// portalRoutes returns the routes of developers and of visitors, for developers alone: keys
// of operators are not accepted where everybody can come.
func portalRoutes(routes []rest.Route) (public []rest.Route) {
	for _, r := range routes {
		switch {
		case r.Role == rest.Developer:
		case r.Developer:
			r.Role = rest.Developer
		case r.Role == rest.Anyone && (strings.HasPrefix(r.Path, "/api/portal/") || strings.HasPrefix(r.Path, "/oauth/") || r.Path == portal.EventsPath):
		default:
			continue
		}
		r.Gateway, r.Developer = false, false
		public = append(public, r)
	}
	return public
}

// newPortalHTTP returns the server of the portal's own listener: pages, calls of developers,
// messages of streams and /oauth.
func (s *Server) newPortalHTTP(routes []rest.Route) *fasthttp.Server {
	public := portalRoutes(routes)
	calls := s.router(public, nil)
	return s.newHTTP(public, s.received(s.deps.Portal.HSTS, func(ctx *fasthttp.RequestCtx) {
		switch path := string(ctx.Path()); {
		case isPage(path):
			s.servePage(ctx)
		case path == "/":
			ctx.Response.Header.Set(fasthttp.HeaderLocation, site.Root+"/")
			ctx.SetStatusCode(fasthttp.StatusTemporaryRedirect)
		default:
			calls(ctx)
		}
	}))
}

// ServePortal serves the portal, and nothing else of the admin, on ln until Shutdown, and
// closes it.
func (s *Server) ServePortal(ln net.Listener) error {
	if err := s.apart.Serve(lingeringListener{ln}); err != nil {
		return fmt.Errorf("serving the portal: %w", err)
	}
	return nil
}
