package admin

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/keys"
)

// Bounds of a change of many objects. Only editors may send bodies of this size: see
// bodies.
const (
	maxBatch    = 64 << 20 // bytes
	applyWithin = 5 * time.Minute
	sentWithin  = 2 * time.Minute
)

// apply makes many changes in one transaction.
func (s *Server) apply(ctx context.Context, c *rest.Call) (any, error) {
	var batch apply.Batch
	if err := c.Decode(&batch); err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	outcome, err := s.applier().Apply(ctx, by, &batch)
	if err != nil || outcome.DryRun {
		return outcome, err
	}
	for _, hash := range outcome.Hashes() {
		s.gateways.Deliver(hash)
	}
	s.log.Info("configuration changed", "revision", outcome.Revision, "by", by.Name, "route", c.Route.Name(), "objects", len(outcome.Changes), "keys", outcome.Keys)
	return outcome, nil
}

func (s *Server) applier() *apply.Applier {
	return &apply.Applier{Store: s.deps.Store, Schemas: s.schemas, Keys: keys.Service{
		Counter: s.deps.Counters, Naming: s.deps.Naming, Options: s.deps.KeyOptions, Now: time.Now,
	}}
}

// effect returns what a batch would change, and which keys the change concerns.
func (s *Server) effect(ctx context.Context, c *rest.Call) (any, error) {
	var batch apply.Batch
	if err := c.Decode(&batch); err != nil {
		return nil, err
	}
	e, _, err := s.applier().Effect(ctx, c.Author(c.Source()), &batch)
	return e, err
}

// applyRoutes are the routes of changes of many objects.
func (s *Server) applyRoutes() []rest.Route {
	return []rest.Route{{
		Method: "POST", Path: "/api/config/apply", Summary: "Change many objects in one transaction, or try to", Tag: "Configuration", Role: rest.Editor,
		Body: apply.Batch{}, Reply: apply.Outcome{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: s.apply,
		MaxBody: maxBatch, Within: applyWithin,
	}, {
		Method: "POST", Path: "/api/config/effect", Summary: "Show what a change of many objects would do, and to whom; nothing is stored", Tag: "Configuration", Role: rest.Editor,
		Query: []string{"report"}, Body: apply.Batch{}, Reply: apply.Effect{}, Or: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: rest.Reported(s.effect),
		MaxBody: maxBatch, Within: applyWithin,
	}}
}

// bodies returns the function that fasthttp calls for every request head. A body larger
// than other routes take is read only from callers who may send it, so that others
// cannot fill the memory. Refusals are written by the handler.
func (s *Server) bodies(routes []rest.Route) func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	large := make(map[string]*rest.Route)
	for i := range routes {
		if routes[i].MaxBody > 0 {
			large[routes[i].Name()] = &routes[i]
		}
	}
	return func(head *fasthttp.RequestHeader) (conf fasthttp.RequestConfig) {
		if length := head.ContentLength(); length >= 0 && length <= rest.MaxBody {
			return conf
		}
		path, _, _ := bytes.Cut(head.RequestURI(), []byte{'?'})
		route := large[string(head.Method())+" "+strings.TrimSuffix(string(path), "/")]
		if route == nil {
			return conf
		}
		ctx, cancel := context.WithTimeout(s.lifetime, answerWithin)
		defer cancel()
		credential := rest.CredentialIn(head)
		if len(credential) == 0 {
			return conf
		}
		if who, err := s.identify(ctx, credential); err == nil && route.Allows(who.Role) {
			conf.MaxRequestBodySize, conf.ReadTimeout = route.MaxBody, sentWithin
		}
		return conf
	}
}
