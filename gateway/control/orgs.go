package control

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/valyala/fasthttp"
)

// The session of an organisation holds the limits of all its keys together. It is stored
// with the keys.

var orgWords = keyWords{missing: "Org not found", status: http.StatusInternalServerError, verb: "store"}

var noOrg = refuse(fasthttp.StatusNotFound, "No such organisation found in Active API list")

// org returns the key that identifies the organisation in the path.
func (c *call) org() keys.Ref { return keys.Ref{ID: credential.OrgIdentity(c.id), Org: c.id} }

func (a *API) listOrgs(ctx context.Context, _ *call) (any, error) {
	found, err := a.deps.Keys.Find(ctx, keys.Filter{Prefix: credential.OrgIdentity("")})
	if err != nil {
		return nil, orgWords.fault(err)
	}
	list := &keyList{Keys: []string{}}
	for _, identity := range found {
		list.Keys = append(list.Keys, credential.OrgOf(identity))
	}
	return list, nil
}

func (a *API) getOrg(ctx context.Context, c *call) (any, error) {
	session, _, err := a.deps.Keys.Get(ctx, c.org())
	if err != nil {
		return nil, orgWords.fault(err)
	}
	return session, nil
}

func (a *API) addOrg(ctx context.Context, c *call) (any, error) {
	session, keep, err := a.orgSession(c)
	if err != nil {
		return nil, err
	}
	if _, err := a.deps.Keys.Create(ctx, c.org().ID, session, keep); err != nil {
		return nil, orgWords.fault(err)
	}
	a.log.Info("limits of an organisation saved through the gateway API", "org", c.id, "action", added)
	return a.limited(c, added), nil
}

// updateOrg creates the session if there is none yet.
func (a *API) updateOrg(ctx context.Context, c *call) (any, error) {
	session, keep, err := a.orgSession(c)
	if err != nil {
		return nil, err
	}
	_, err = a.deps.Keys.Update(ctx, c.org(), session, keep)
	if errors.Is(err, keys.ErrNotFound) {
		_, err = a.deps.Keys.Create(ctx, c.org().ID, session, keep)
	}
	if err != nil {
		return nil, orgWords.fault(err)
	}
	a.log.Info("limits of an organisation saved through the gateway API", "org", c.id, "action", modified)
	return a.limited(c, modified), nil
}

func (a *API) deleteOrg(ctx context.Context, c *call) (any, error) {
	if _, err := a.deps.Keys.Delete(ctx, c.org()); err != nil {
		return nil, orgWords.fault(err)
	}
	a.log.Info("limits of an organisation deleted through the gateway API", "org", c.id)
	return changed(c.id, deleted), nil
}

// limited is the response to a change of an organisation's limits.
func (a *API) limited(c *call, action string) *change {
	answer := changed(c.id, action).warn(c.warnings)
	if !a.deps.OrgLimits {
		answer.Warnings = append(answer.Warnings, definition.Problem{
			Message: "the limits are stored but not enforced: enforce_org_quotas is off in the configuration of this gateway",
		})
	}
	return answer
}

// orgSession parses the session of the organisation in the path, and whether its used
// quota stays, which is the default.
func (a *API) orgSession(c *call) (s *definition.Session, keepQuota bool, err error) {
	reset, err := c.flag("reset_quota")
	if err != nil {
		return nil, false, err
	}
	if s, err = read(c, keyKind); err != nil {
		return nil, false, err
	}
	inService := slices.ContainsFunc(a.deps.Live.APIs(), func(api *definition.API) bool { return api.OrgID == c.id })
	if !inService {
		return nil, false, noOrg
	}
	if s.OrgID != "" && s.OrgID != c.id {
		return nil, false, refuse(fasthttp.StatusBadRequest, "org_id in the session does not match the organisation in the path")
	}
	s.OrgID = c.id
	return s, !reset, nil
}
