package credentials

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

const (
	noClient   = "There is no such OAuth client"
	clientsTag = "OAuth clients"
)

// Routes lists the routes of clients.
func (s *Clients) Routes() []rest.Route {
	const of, own = "/api/portal/developers/{id}/oauth-clients", "/api/portal/me/oauth-clients"
	return []rest.Route{
		{
			Method: "GET", Path: of, Summary: "List a developer's OAuth clients", Tag: clientsTag, Role: rest.Viewer,
			Query: rest.Paging, Reply: clientList{}, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: of, Summary: "Make an OAuth client for a developer; the answer shows its secret this once", Tag: clientsTag, Role: rest.Approver,
			Body: newClient{}, Status: 201, Reply: model.Client{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: s.create,
		},
		{
			Method: "POST", Path: of + "/{client}/secret", Summary: "Give an OAuth client another secret, shown this once; its tokens stay", Tag: clientsTag, Role: rest.Approver,
			Reply: model.Client{}, Wrong: []int{404}, Secret: true, Handle: s.renew,
		},
		{
			Method: "DELETE", Path: of + "/{client}", Summary: "Delete an OAuth client; its tokens end", Tag: clientsTag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.delete,
		},
		{
			Method: "GET", Path: own, Summary: "List one's own OAuth clients", Tag: clientsTag, Role: rest.Developer,
			Query: rest.Paging, Reply: clientList{}, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: own + "/{client}/secret", Summary: "Give one's own OAuth client another secret, shown this once; its tokens stay", Tag: clientsTag, Role: rest.Developer,
			Reply: model.Client{}, Wrong: []int{404}, Secret: true, Handle: s.renew,
		},
		{
			Method: "DELETE", Path: own + "/{client}", Summary: "Delete one's own OAuth client; its tokens end", Tag: clientsTag, Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.delete,
		},
		{
			Method: "POST", Path: "/oauth/token", Summary: "Get an access token by the client credentials grant (RFC 6749, section 4.4); the client stands in Authorization (Basic) or in the form", Tag: clientsTag, Role: rest.Anyone,
			Form: tokenForm{}, Reply: granted{}, Fault: oauthError{}, Wrong: []int{400, 401, 429, 503}, Handle: s.token,
		},
		{
			Method: "POST", Path: "/oauth/revoke", Summary: "End an access token of the client that asks (RFC 7009); the client stands in Authorization (Basic) or in the form", Tag: clientsTag, Role: rest.Anyone,
			Form: revocationForm{}, Reply: revoked{}, Fault: oauthError{}, Wrong: []int{400, 401, 429, 503}, Handle: s.revoke,
		},
	}
}

// clientList is one page of a developer's clients.
type clientList struct {
	// Clients of the page.
	Data []clientEntry `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// clientEntry is a client on a list.
type clientEntry struct {
	model.Client
	// Id of the policy that the client's tokens have.
	Policy string `json:"policy_id"`
	// Id of the session that all tokens of the client stand for, as keys have it.
	Key string `json:"key_id"`
}

// revoked is the empty answer to a revocation.
type revoked struct{}

// newClient is the body of a call that creates a client.
type newClient struct {
	// Id of the policy that the client's tokens are to have.
	Policy string `json:"policy_id"`
	// URI that the client may be redirected to.
	RedirectURI string `json:"redirect_uri,omitempty"`
	// What the application is, at most 2000 bytes.
	AppDescription string `json:"app_description,omitempty"`
	// What the application calls the API for, at most 2000 bytes.
	UseCase string `json:"use_case,omitempty"`
}

// clientRef returns the client that a call is about: one of the caller, or of the
// developer in the path.
func clientRef(c *rest.Call) store.OAuthClientRef {
	developer := c.Who.ID
	if c.Who.Role != rest.Developer {
		developer = c.Param("id")
	}
	return store.OAuthClientRef{Org: c.Who.Org, Developer: developer, Client: c.Param("client")}
}

func shownClient(row *store.OAuthClient, secret string) model.Client {
	return model.Client{
		ClientID: row.ClientID, Secret: secret, RedirectURI: row.RedirectUri, AppDescription: row.AppDescription, UseCase: row.UseCase,
		DateCreated: row.CreatedAt.UTC().Format(time.RFC3339),
	}
}

func (s *Clients) list(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	rows, total, err := s.d.Store.ListOAuthClients(ctx, clientRef(c), page)
	if err != nil {
		return nil, err
	}
	answer := clientList{Data: make([]clientEntry, 0, len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		answer.Data = append(answer.Data, clientEntry{shownClient(&rows[i], ""), rows[i].PolicyID, s.d.Keys.PublicID(rows[i].KeyHash)})
	}
	return answer, nil
}

func (s *Clients) create(ctx context.Context, c *rest.Call) (any, error) {
	var in newClient
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var made model.Credential
	err := s.d.Keys.InTx(ctx, c.Author(c.Source()), func(w *KeyTx) (err error) {
		made, err = s.Issue(ctx, w, ClientGrant{
			Developer: c.Param("id"), Policy: in.Policy, Redirect: in.RedirectURI, App: in.AppDescription, Use: in.UseCase,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("OAuth client created", "client", made.RawKey, "by", c.Who.Name)
	return model.Client{
		ClientID: made.RawKey, Secret: made.Password, RedirectURI: in.RedirectURI, AppDescription: in.AppDescription, UseCase: in.UseCase,
		DateCreated: s.d.Now().UTC().Format(time.RFC3339),
	}, nil
}

// check checks the members of a client.
func (in *newClient) check() error {
	if in.Policy == "" {
		return rest.BadRequest("Validation failed: policy_id: must be the id of a policy")
	}
	return checkClient(
		&ClientGrant{Redirect: in.RedirectURI, App: in.AppDescription, Use: in.UseCase},
		clientPaths{Redirect: "redirect_uri", App: "app_description", Use: "use_case"},
	)
}

func (s *Clients) renew(ctx context.Context, c *rest.Call) (any, error) {
	var row store.OAuthClient
	secret := newSecret()
	by := c.Author(c.Source())
	err := s.d.Store.InTx(ctx, func(tx *store.Tx) (err error) {
		if row, err = tx.LockOAuthClient(ctx, clientRef(c)); err != nil {
			return err
		}
		if err := tx.SetOAuthClientSecret(ctx, row.ClientID, rest.HashOf([]byte(secret))); err != nil {
			return err
		}
		return tx.Audit(ctx, by, store.AuditEntry{Action: "secret renewed", Kind: "oauth client", ID: row.ClientID})
	})
	if err != nil {
		return nil, rest.Missing(err, noClient)
	}
	return shownClient(&row, secret), nil
}

func (s *Clients) delete(ctx context.Context, c *rest.Call) (any, error) {
	which := clientRef(c)
	row, err := s.d.Store.OAuthClientByID(ctx, which.Client)
	if err == nil && (row.OrgID != which.Org || row.DeveloperID != which.Developer) {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, rest.Missing(err, noClient)
	}
	err = s.d.Keys.InTx(ctx, c.Author(c.Source()), func(w *KeyTx) error {
		return s.d.Keys.Revoke(ctx, w, row.DeveloperID, row.KeyHash)
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("OAuth client deleted", "client", row.ClientID, "by", c.Who.Name)
	return rest.Done("Data deleted", nil), nil
}
