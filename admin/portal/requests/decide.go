package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/requests"
)

// approve answers PUT /approve/{id} with the credential, which is shown this once.
func (s *Service) approve(ctx context.Context, c *rest.Call) (any, error) {
	row, err := kept.Get(ctx, s.d.Store, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noRequest)
	}
	if err := checkSent(c, row.DeveloperID); err != nil {
		return nil, err
	}
	if _, err := after(&row, approve); err != nil {
		return nil, err
	}
	made, err := s.Approve(ctx, c.Author(c.Source()), &row)
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("key request approved", "request", row.ID, "by", c.Who.Name)
	return made, nil
}

// checkSent checks the developer object that approvals may come with. Nothing in it
// has an effect: who gets the credential is the request's to say.
func checkSent(c *rest.Call, developer string) error {
	body, err := c.Body()
	if err != nil {
		return nil // none was sent
	}
	sent, err := record.Parse[record.Developer](body)
	if err != nil {
		return err
	}
	if sent.ID != "" && sent.ID != developer {
		return rest.BadRequest(fmt.Sprintf("id: must be %s, the developer who asks, or be left out", developer))
	}
	return nil
}

// Approve makes what a request asks for, as it was found: the credential, whose it
// is, the end of the request, the letter and the event come about together, or
// nothing of them.
func (s *Service) Approve(ctx context.Context, by store.Author, found *kept.Request) (record.Credential, error) {
	var password *credentials.Password
	if found.AuthType == credentials.Basic && found.KeyHash == "" {
		var err error
		if password, err = s.d.Credentials.NewPassword(ctx); err != nil {
			return record.Credential{}, err
		}
	}
	var made record.Credential
	err := s.d.Credentials.InTx(ctx, by, func(w *credentials.Work) error {
		row, err := kept.Lock(ctx, w.Tx, by.Org, found.ID)
		if err != nil {
			return rest.Missing(err, noRequest)
		}
		made, err = s.approveLocked(ctx, w, &row, password)
		return err
	})
	if err != nil {
		return record.Credential{}, err
	}
	return made, nil
}

// approveLocked approves a request that the transaction has locked.
func (s *Service) approveLocked(ctx context.Context, w *credentials.Work, row *kept.Request, password *credentials.Password) (record.Credential, error) {
	next, err := after(row, approve)
	if err != nil {
		return record.Credential{}, err
	}
	if row.AuthType == credentials.Basic && row.KeyHash == "" && password == nil {
		return record.Credential{}, &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	developer, err := kept.LockRequester(ctx, w.Tx, w.By.Org, row.DeveloperID)
	if err != nil {
		return record.Credential{}, err
	}
	if developer.Inactive {
		return record.Credential{}, rest.Refuse(fasthttp.StatusConflict, "The developer is inactive and gets no credentials; change that first, or reject the request")
	}
	issued, err := s.issue(ctx, w, row, &grantee{developer, password})
	if err != nil {
		return record.Credential{}, cannotApprove(err)
	}
	decided, err := kept.Decide(ctx, w.Tx, w.By, row, kept.Decision{State: string(next), Hash: issued.Hash})
	if err != nil {
		return record.Credential{}, err
	}
	if err := s.tell(ctx, w, &decided, developer.Email, issued.Credential); err != nil {
		return record.Credential{}, err
	}
	return issued.Credential, s.emit(ctx, w.Tx, record.RequestApproved, &decided)
}

// cannotApprove says of policies that are not to be had any more that the request
// has to change, not the call.
func cannotApprove(err error) error {
	policies, ok := errors.AsType[*credentials.PolicyError](err)
	if !ok {
		return err
	}
	return rest.Refuse(fasthttp.StatusConflict, "The key request cannot be approved: "+policies.Error()+"; change the request, or reject it", policies.Problems...)
}

// grantee is who gets a credential, with the password for one that has one.
type grantee struct {
	developer kept.Requester
	password  *credentials.Password
}

// issue makes what a request asks for.
func (s *Service) issue(ctx context.Context, w *credentials.Work, row *kept.Request, to *grantee) (credentials.Issued, error) {
	r, err := s.recordOf(row)
	if err != nil {
		return credentials.Issued{}, err
	}
	switch {
	case row.KeyHash != "":
		err := s.d.Credentials.Change(ctx, w, row.DeveloperID, row.KeyHash, func(have []string) []string {
			return merged(have, row.Policies, r.RemovePolicies)
		})
		if fault, ok := errors.AsType[*rest.Fault](err); ok && fault.Status == fasthttp.StatusNotFound {
			err = rest.Refuse(fasthttp.StatusConflict, "The key that the request is to change is gone; reject the request")
		}
		return credentials.Issued{Hash: row.KeyHash}, err
	case row.AuthType == credentials.OAuth:
		return s.issueClient(ctx, w, row, r)
	}
	jwtSecret, err := s.open(row)
	if err != nil {
		return credentials.Issued{}, err
	}
	certificate, err := certificateID(w.By.Org, r.Certificate)
	if err != nil {
		return credentials.Issued{}, err
	}
	grant := &credentials.Grant{
		Developer: to.developer, Request: row.ID, Policies: row.Policies, JWTSecret: jwtSecret, Certificate: certificate,
	}
	if row.AuthType == credentials.Basic {
		grant.Password = to.password
	}
	return s.d.Credentials.Issue(ctx, w, grant)
}

func (s *Service) issueClient(ctx context.Context, w *credentials.Work, row *kept.Request, r *record.KeyRequest) (credentials.Issued, error) {
	if s.d.Clients == nil {
		return credentials.Issued{}, rest.Refuse(fasthttp.StatusConflict, "OAuth clients cannot be made here; change the auth_type of the policy's catalogue entry")
	}
	found, err := kept.HoldPolicies(ctx, w.Tx, w.By.Org, row.Policies)
	if err != nil {
		return credentials.Issued{}, err
	}
	if err := credentials.CheckPolicies(found, row.Policies); err != nil {
		return credentials.Issued{}, err
	}
	client := clientOf(r)
	client.Developer, client.Policy, client.Request = row.DeveloperID, row.Policies[0], row.ID
	made, err := s.d.Clients.Issue(ctx, w, client)
	return credentials.Issued{Credential: made}, err
}

// tell queues the letter with a credential; a changed key has none.
func (s *Service) tell(ctx context.Context, w *credentials.Work, row *kept.Request, to string, made record.Credential) error {
	if made.RawKey == "" {
		return nil
	}
	found, err := kept.HoldPolicies(ctx, w.Tx, w.By.Org, row.Policies)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(row.Policies))
	for _, id := range row.Policies {
		names = append(names, found[id].Name)
	}
	return s.d.Letters.Put(ctx, w.Tx, record.Letter{
		Org: row.OrgID, Kind: record.KeyLetter, To: to, Developer: row.DeveloperID, Credential: &made, Policies: names,
	})
}

// rejection says why a request is rejected.
type rejection struct {
	Reason string `json:"reason,omitempty" doc:"for the developer; at most 2,000 bytes"`
}

const maxReason = 2000

// reject answers PUT /reject/{id}.
func (s *Service) reject(ctx context.Context, c *rest.Call) (any, error) {
	in, err := readRejection(c)
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	err = s.d.Credentials.InTx(ctx, by, func(w *credentials.Work) error {
		row, err := kept.Lock(ctx, w.Tx, by.Org, c.Param("id"))
		if err != nil {
			return rest.Missing(err, noRequest)
		}
		return s.rejectLocked(ctx, w, &row, in.Reason)
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("key request rejected", "request", c.Param("id"), "by", c.Who.Name)
	return rest.Done(c.Param("id"), nil), nil
}

func readRejection(c *rest.Call) (*rejection, error) {
	in := new(rejection)
	if _, err := c.Body(); err != nil {
		return in, nil // no reason is given
	}
	if err := c.Decode(in); err != nil {
		return nil, err
	}
	if len(in.Reason) > maxReason || !rest.Printable(strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(in.Reason)) {
		return nil, rest.BadRequest(fmt.Sprintf("reason: must be printable text of at most %d bytes", maxReason))
	}
	return in, nil
}

func (s *Service) rejectLocked(ctx context.Context, w *credentials.Work, row *kept.Request, reason string) error {
	next, err := after(row, reject)
	if err != nil {
		return err
	}
	developer, err := kept.HoldRequester(ctx, w.Tx, w.By.Org, row.DeveloperID)
	if err != nil {
		return err
	}
	decided, err := kept.Decide(ctx, w.Tx, w.By, row, kept.Decision{State: string(next), Reason: reason, Hash: row.KeyHash})
	if err != nil {
		return err
	}
	letter := record.Letter{Org: row.OrgID, Kind: record.RejectionLetter, To: developer.Email, Developer: developer.ID, Reason: reason}
	if err := s.d.Letters.Put(ctx, w.Tx, letter); err != nil {
		return err
	}
	return s.emit(ctx, w.Tx, record.RequestRejected, &decided)
}
