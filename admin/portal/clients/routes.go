package clients

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/portal/requests"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/clients"
)

const (
	noDeveloper = "Could not retrieve portal object."
	noClient    = "There is no such OAuth client"
	tag         = "OAuth clients"
)

// Routes lists what is answered about clients, and to them.
func (s *Service) Routes() []rest.Route {
	const of, own = "/api/portal/developers/{id}/oauth-clients", "/api/portal/me/oauth-clients"
	return []rest.Route{
		{
			Method: "GET", Path: of, Summary: "List a developer's OAuth clients", Tag: tag, Role: rest.Viewer,
			Query: rest.Paging, Reply: list{}, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: of, Summary: "Make an OAuth client for a developer; the answer shows its secret this once", Tag: tag, Role: rest.Approver,
			Body: wanted{}, Reply: record.Client{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: s.create,
		},
		{
			Method: "POST", Path: of + "/{client}/secret", Summary: "Give an OAuth client another secret, shown this once; its tokens stay", Tag: tag, Role: rest.Approver,
			Reply: record.Client{}, Wrong: []int{404}, Secret: true, Handle: s.renew,
		},
		{
			Method: "DELETE", Path: of + "/{client}", Summary: "Delete an OAuth client; its tokens end", Tag: tag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.delete,
		},
		{
			Method: "GET", Path: own, Summary: "List one's own OAuth clients", Tag: tag, Role: rest.Developer,
			Query: rest.Paging, Reply: list{}, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: own + "/{client}/secret", Summary: "Give one's own OAuth client another secret, shown this once; its tokens stay", Tag: tag, Role: rest.Developer,
			Reply: record.Client{}, Wrong: []int{404}, Secret: true, Handle: s.renew,
		},
		{
			Method: "DELETE", Path: own + "/{client}", Summary: "Delete one's own OAuth client; its tokens end", Tag: tag, Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.delete,
		},
		{
			Method: "POST", Path: "/oauth/token", Summary: "Get an access token by the client credentials grant (RFC 6749, section 4.4); the form holds grant_type, the client stands in Authorization or in the form", Tag: tag, Role: rest.Anyone,
			Reply: granted{}, Wrong: []int{400, 401, 429, 503}, Handle: s.token,
		},
		{
			Method: "POST", Path: "/oauth/revoke", Summary: "End an access token of the client that asks (RFC 7009); the form holds token", Tag: tag, Role: rest.Anyone,
			Reply: revoked{}, Wrong: []int{400, 401, 429, 503}, Handle: s.revoke,
		},
	}
}

// list is one page of a developer's clients.
type list struct {
	Data  []entry `json:"Data"`
	Pages int64   `json:"Pages"`
}

// entry is a client on a list.
type entry struct {
	record.Client
	Policy string `json:"policy_id"`
	Key    string `json:"key_id" doc:"names the session that all tokens of the client stand for"`
}

// revoked is the answer to who ended a token: there is nothing to tell.
type revoked struct{}

// wanted says what client a developer is to get.
type wanted struct {
	Policy         string `json:"policy_id"`
	RedirectURI    string `json:"redirect_uri,omitempty"`
	AppDescription string `json:"app_description,omitempty"`
	UseCase        string `json:"use_case,omitempty"`
}

// of names the client that a call is about: a developer's own, or one of the
// developer whom the path names.
func of(c *rest.Call) kept.Of {
	developer := c.Who.ID
	if c.Who.Role != rest.Developer {
		developer = c.Param("id")
	}
	return kept.Of{Org: c.Who.Org, Developer: developer, Client: c.Param("client")}
}

func shown(row *kept.Row, secret string) record.Client {
	return record.Client{
		ClientID: row.ClientID, Secret: secret, RedirectURI: row.RedirectUri, AppDescription: row.AppDescription, UseCase: row.UseCase,
		DateCreated: row.CreatedAt.UTC().Format(time.RFC3339),
	}
}

func (s *Service) list(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	rows, total, err := kept.List(ctx, s.d.Store, of(c), page)
	if err != nil {
		return nil, err
	}
	answer := list{Data: make([]entry, 0, len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		answer.Data = append(answer.Data, entry{shown(&rows[i], ""), rows[i].PolicyID, s.d.Credentials.PublicID(rows[i].KeyHash)})
	}
	return answer, nil
}

func (s *Service) create(ctx context.Context, c *rest.Call) (any, error) {
	var in wanted
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var made record.Credential
	err := s.d.Credentials.InTx(ctx, c.Author(c.Source()), func(w *credentials.Work) (err error) {
		made, err = s.Issue(ctx, w, requests.Client{
			Developer: c.Param("id"), Policy: in.Policy, Redirect: in.RedirectURI, App: in.AppDescription, Use: in.UseCase,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("OAuth client created", "client", made.RawKey, "by", c.Who.Name)
	return record.Client{
		ClientID: made.RawKey, Secret: made.Password, RedirectURI: in.RedirectURI, AppDescription: in.AppDescription, UseCase: in.UseCase,
		DateCreated: s.d.Now().UTC().Format(time.RFC3339),
	}, nil
}

// check refuses what no client can have.
func (in *wanted) check() error {
	if in.Policy == "" {
		return rest.BadRequest("Validation failed: policy_id: must be the id of a policy")
	}
	return requests.CheckClient(
		&requests.Client{Redirect: in.RedirectURI, App: in.AppDescription, Use: in.UseCase},
		requests.Paths{Redirect: "redirect_uri", App: "app_description", Use: "use_case"},
	)
}

func (s *Service) renew(ctx context.Context, c *rest.Call) (any, error) {
	var row kept.Row
	secret := newSecret()
	by := c.Author(c.Source())
	err := s.d.Store.InTx(ctx, func(tx *store.Tx) (err error) {
		if row, err = kept.Lock(ctx, tx, of(c)); err != nil {
			return err
		}
		if err := kept.SetSecret(ctx, tx, row.ClientID, rest.HashOf([]byte(secret))); err != nil {
			return err
		}
		return tx.Audit(ctx, by, store.Deed{Action: "secret renewed", Kind: "oauth client", ID: row.ClientID})
	})
	if err != nil {
		return nil, rest.Missing(err, noClient)
	}
	return shown(&row, secret), nil
}

func (s *Service) delete(ctx context.Context, c *rest.Call) (any, error) {
	which := of(c)
	row, err := kept.Find(ctx, s.d.Store, which.Client)
	if err == nil && (row.OrgID != which.Org || row.DeveloperID != which.Developer) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, rest.Missing(err, noClient)
	}
	err = s.d.Credentials.InTx(ctx, c.Author(c.Source()), func(w *credentials.Work) error {
		return s.d.Credentials.Revoke(ctx, w, row.DeveloperID, row.KeyHash)
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("OAuth client deleted", "client", row.ClientID, "by", c.Who.Name)
	return rest.Done("Data deleted", nil), nil
}
