package admin

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// A Setting is one value of the effective configuration of the admin's process.
type Setting struct {
	// Name of the setting.
	// Example: "admin.listen"
	Key string `json:"key"`
	// Value in force, as text; *** for a secret that is set.
	Value string `json:"value"`
	// Where the value comes from: file and line, env NAME, flag --name, or default.
	Origin string `json:"origin"`
}

// A Finding is the result of one check of the installation.
type Finding struct {
	// ok: in order; warn: it works, but should be changed; fail: it does not work.
	State string `json:"state" enum:"ok,warn,fail"`
	// Name of the check.
	Check string `json:"check"`
	// What was found, in English.
	Detail string `json:"detail"`
	// What to do; left out if the state is ok.
	Remedy string `json:"remedy,omitempty"`
}

// Ask makes a GET of the admin with the rights of a caller, and returns the body.
type Ask func(ctx context.Context, path string) ([]byte, error)

func (s *Server) settingsRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/settings", Summary: "List the effective settings of the admin with their origin", Tag: "Operation", Role: rest.Admin,
			Reply: settingList{}, Wrong: []int{403}, Handle: s.listSettings,
		},
		{
			Method: "GET", Path: "/api/doctor", Summary: "Check the installation, as sluice doctor does; takes some seconds", Tag: "Operation", Role: rest.Admin,
			Reply: findingList{}, Wrong: []int{403, 503}, Within: examineWithin, Handle: s.examine,
		},
	}
}

// settingList are the effective settings, in the order of the reference.
type settingList struct {
	// Settings of the admin's process, in the order of the reference.
	Settings []Setting `json:"settings"`
}

// findingList are the results of all checks.
type findingList struct {
	// Results of all checks, in the order in which they ran.
	Findings []Finding `json:"findings"`
}

// mustOperate refuses admins of other organisations than the first: the process serves
// all of them.
func (s *Server) mustOperate(ctx context.Context, c *rest.Call) error {
	may, err := s.actsForAll(ctx, c)
	if err == nil && !may {
		err = rest.Refuse(fasthttp.StatusForbidden, "access denied: only admins of the first organisation see the settings and state of the installation")
	}
	return err
}

func (s *Server) listSettings(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.mustOperate(ctx, c); err != nil {
		return nil, err
	}
	list := settingList{Settings: []Setting{}}
	if s.deps.Settings != nil {
		list.Settings = s.deps.Settings()
	}
	return list, nil
}

// examineWithin bounds an examination: servers that do not answer take some seconds each.
const examineWithin = 45 * time.Second

// examine checks the installation. One examination at a time is enough.
func (s *Server) examine(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.mustOperate(ctx, c); err != nil {
		return nil, err
	}
	if !s.examining.TryLock() {
		return nil, rest.Unavailable("The installation is being examined; try again")
	}
	defer s.examining.Unlock()
	list := findingList{Findings: []Finding{}}
	if s.deps.Examine != nil {
		list.Findings = s.deps.Examine(ctx, s.askAs(c))
	}
	return list, nil
}

// askAs returns an Ask with the rights of a caller.
func (s *Server) askAs(c *rest.Call) Ask {
	return func(_ context.Context, path string) ([]byte, error) {
		req := new(fasthttp.Request)
		c.HTTP.Request.Header.CopyTo(&req.Header)
		req.Header.SetMethod(fasthttp.MethodGet)
		req.SetRequestURI(path)
		answer := new(fasthttp.RequestCtx)
		answer.Init(req, c.HTTP.RemoteAddr(), nil)
		s.inside(answer)
		if status := answer.Response.StatusCode(); status >= 400 {
			return nil, fmt.Errorf("GET %s: %d %.200s", path, status, answer.Response.Body())
		}
		return bytes.Clone(answer.Response.Body()), nil
	}
}
