package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// moveApprove answers PUT /approve/{id} with the credential, which is shown this once.
func (s *Requests) approve(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.d.Store.KeyRequestByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noRequest)
	}
	if err := checkSent(c, row.DeveloperID); err != nil {
		return nil, err
	}
	if _, err := nextState(&row, moveApprove); err != nil {
		return nil, err
	}
	made, err := s.Approve(ctx, c.Author(c.Source()), &row)
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("key request approved", "request", row.ID, "by", c.Who.Name)
	return made, nil
}

// checkSent checks the developer object that may come with an approval. It has no effect:
// the request names the developer.
func checkSent(c *rest.Call, developer string) error {
	body, err := c.Body()
	if err != nil {
		return nil // none was sent
	}
	sent, err := model.Parse[model.Developer](body)
	if err != nil {
		return err
	}
	if sent.ID != "" && sent.ID != developer {
		return rest.BadRequest(fmt.Sprintf("id: must be %s, the developer who asks, or be left out", developer))
	}
	return nil
}

// Approve approves a request, as found: the credential, its owner, the decision, the
// letter and the event are stored in one transaction.
func (s *Requests) Approve(ctx context.Context, by store.Author, found *store.KeyRequest) (model.Credential, error) {
	var password *Password
	if found.AuthType == Basic && found.KeyHash == "" {
		var err error
		if password, err = s.d.Keys.NewPassword(ctx); err != nil {
			return model.Credential{}, err
		}
	}
	var made model.Credential
	err := s.d.Keys.InTx(ctx, by, func(w *KeyTx) error {
		row, err := w.Tx.LockKeyRequest(ctx, by.Org, found.ID)
		if err != nil {
			return rest.Missing(err, noRequest)
		}
		made, err = s.approveLocked(ctx, w, &row, password)
		return err
	})
	if err != nil {
		return model.Credential{}, err
	}
	return made, nil
}

// approveLocked approves a request that the transaction has locked.
func (s *Requests) approveLocked(ctx context.Context, w *KeyTx, row *store.KeyRequest, password *Password) (model.Credential, error) {
	next, err := nextState(row, moveApprove)
	if err != nil {
		return model.Credential{}, err
	}
	if row.AuthType == Basic && row.KeyHash == "" && password == nil {
		return model.Credential{}, &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	developer, err := w.Tx.LockRequester(ctx, w.By.Org, row.DeveloperID)
	if err != nil {
		return model.Credential{}, err
	}
	if developer.Inactive {
		return model.Credential{}, rest.Refuse(fasthttp.StatusConflict, "The developer is inactive and gets no credentials; change that first, or reject the request")
	}
	issued, err := s.issue(ctx, w, row, &recipient{developer, password})
	if err != nil {
		return model.Credential{}, cannotApprove(err)
	}
	decided, err := w.Tx.DecideKeyRequest(ctx, w.By, row, store.Decision{State: string(next), Hash: issued.Hash})
	if err != nil {
		return model.Credential{}, err
	}
	if err := s.queueLetter(ctx, w, &decided, developer.Email, issued.Credential); err != nil {
		return model.Credential{}, err
	}
	return issued.Credential, s.emit(ctx, w.Tx, model.RequestApproved, &decided)
}

// cannotApprove answers 409 for policies that are not available any more: the request has
// to be changed, not the call.
func cannotApprove(err error) error {
	policies, ok := errors.AsType[*PolicyError](err)
	if !ok {
		return err
	}
	return rest.Refuse(fasthttp.StatusConflict, "The key request cannot be approved: "+policies.Error()+"; change the request, or reject it", policies.Problems...)
}

// recipient is the developer who gets a credential, with the password of a user.
type recipient struct {
	developer store.Requester
	password  *Password
}

// issue issues what a request asks for.
func (s *Requests) issue(ctx context.Context, w *KeyTx, row *store.KeyRequest, to *recipient) (Issued, error) {
	r, err := s.recordOf(row)
	if err != nil {
		return Issued{}, err
	}
	switch {
	case row.KeyHash != "":
		err := s.d.Keys.Change(ctx, w, row.DeveloperID, row.KeyHash, func(have []string) []string {
			return merged(have, row.Policies, r.RemovePolicies)
		})
		if fault, ok := errors.AsType[*rest.Fault](err); ok && fault.Status == fasthttp.StatusNotFound {
			err = rest.Refuse(fasthttp.StatusConflict, "The key that the request is to change is gone; reject the request")
		}
		return Issued{Hash: row.KeyHash}, err
	case row.AuthType == OAuth:
		return s.issueClient(ctx, w, row, r)
	}
	jwtSecret, err := s.open(row)
	if err != nil {
		return Issued{}, err
	}
	certificate, err := certificateID(w.By.Org, r.Certificate)
	if err != nil {
		return Issued{}, err
	}
	grant := &Grant{
		Developer: to.developer, Request: row.ID, Policies: row.Policies, JWTSecret: jwtSecret, Certificate: certificate,
	}
	if row.AuthType == Basic {
		grant.Password = to.password
	}
	return s.d.Keys.Issue(ctx, w, grant)
}

func (s *Requests) issueClient(ctx context.Context, w *KeyTx, row *store.KeyRequest, r *model.KeyRequest) (Issued, error) {
	if s.d.Clients == nil {
		return Issued{}, rest.Refuse(fasthttp.StatusConflict, "OAuth clients cannot be made here; change the auth_type of the policy's catalogue entry")
	}
	found, err := w.Tx.HoldPolicies(ctx, w.By.Org, row.Policies)
	if err != nil {
		return Issued{}, err
	}
	if err := CheckPolicies(found, row.Policies); err != nil {
		return Issued{}, err
	}
	client := clientGrantOf(r)
	client.Developer, client.Policy, client.Request = row.DeveloperID, row.Policies[0], row.ID
	made, err := s.d.Clients.Issue(ctx, w, client)
	return Issued{Credential: made}, err
}

// queueLetter queues the letter with a credential; a changed key has none.
func (s *Requests) queueLetter(ctx context.Context, w *KeyTx, row *store.KeyRequest, to string, made model.Credential) error {
	if made.RawKey == "" {
		return nil
	}
	found, err := w.Tx.HoldPolicies(ctx, w.By.Org, row.Policies)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(row.Policies))
	for _, id := range row.Policies {
		names = append(names, found[id].Name)
	}
	return s.d.Letters.Put(ctx, w.Tx, model.Letter{
		Org: row.OrgID, Kind: model.KeyLetter, To: to, Developer: row.DeveloperID, Credential: &made, Policies: names,
	})
}

// rejection is the body of a call that rejects a request.
type rejection struct {
	// Reason for the developer, at most 2,000 bytes. Default: none.
	Reason string `json:"reason,omitempty"`
}

const maxReason = 2000

// moveReject answers PUT /reject/{id}.
func (s *Requests) reject(ctx context.Context, c *rest.Call) (any, error) {
	in, err := readRejection(c)
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	err = s.d.Keys.InTx(ctx, by, func(w *KeyTx) error {
		row, err := w.Tx.LockKeyRequest(ctx, by.Org, c.Param("id"))
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

func (s *Requests) rejectLocked(ctx context.Context, w *KeyTx, row *store.KeyRequest, reason string) error {
	next, err := nextState(row, moveReject)
	if err != nil {
		return err
	}
	developer, err := w.Tx.HoldRequester(ctx, w.By.Org, row.DeveloperID)
	if err != nil {
		return err
	}
	decided, err := w.Tx.DecideKeyRequest(ctx, w.By, row, store.Decision{State: string(next), Reason: reason, Hash: row.KeyHash})
	if err != nil {
		return err
	}
	letter := model.Letter{Org: row.OrgID, Kind: model.RejectionLetter, To: developer.Email, Developer: developer.ID, Reason: reason}
	if err := s.d.Letters.Put(ctx, w.Tx, letter); err != nil {
		return err
	}
	return s.emit(ctx, w.Tx, model.RequestRejected, &decided)
}
