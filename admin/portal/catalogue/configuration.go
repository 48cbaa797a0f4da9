package catalogue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// noObject is the message about objects that do not exist.
const noObject = "Could not retrieve portal object."

func (s *Service) getConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.store.PortalObject(ctx, c.Who.Org, store.PortalConfiguration)
	if errors.Is(err, store.ErrNotFound) {
		return model.Write(s.defaults(c.Who.Org))
	}
	if err != nil {
		return nil, err
	}
	found, err := s.configurationOf(&row)
	if err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	return model.Write(found)
}

func (s *Service) createConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	sent, err := s.readConfiguration(c)
	if err != nil {
		return nil, err
	}
	if sent.ID == "" {
		sent.ID = rest.NewID()
	}
	body, err := model.Write(sent)
	if err != nil {
		return nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := refuseSecond(ctx, tx, c.Who.Org, store.PortalConfiguration); err != nil {
			return err
		}
		return tx.CreatePortalObject(ctx, c.Author(c.Source()), &store.PortalObject{Kind: string(store.PortalConfiguration), ID: sent.ID, Body: body})
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(sent.ID, nil), nil
}

// refuseSecond refuses to create an object that the organisation has.
func refuseSecond(ctx context.Context, tx *store.Tx, org string, kind store.PortalObjectKind) error {
	row, err := tx.LockPortalObject(ctx, org, kind)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f := rest.Refuse(fasthttp.StatusConflict, "There is a "+string(kind)+" already, with the id "+row.ID+"; PUT replaces it")
	f.ETag = rest.ETagOf(row.Version)
	return f
}

// updateConfiguration replaces the configuration, or the defaults if none is stored.
func (s *Service) updateConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	sent, err := s.readConfiguration(c)
	if err != nil {
		return nil, err
	}
	var version int64
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		version, err = putConfiguration(ctx, tx, c, sent, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

func putConfiguration(ctx context.Context, tx *store.Tx, c *rest.Call, sent *model.Configuration, have int64) (version int64, err error) {
	row, err := tx.LockPortalObject(ctx, c.Who.Org, store.PortalConfiguration)
	none := errors.Is(err, store.ErrNotFound) && have == 0
	if err != nil && !none {
		return 0, err
	}
	if none {
		row = store.PortalObject{Kind: string(store.PortalConfiguration), ID: rest.NewID()}
	}
	if sent.ID != "" && sent.ID != row.ID {
		return 0, wrongID(row.ID, none)
	}
	if err := store.CheckVersion(have, row.Version); err != nil {
		return 0, err
	}
	sent.ID = row.ID
	body, err := model.Write(sent)
	if err != nil {
		return 0, err
	}
	by := c.Author(c.Source())
	if none {
		row.Body = body
		return 1, tx.CreatePortalObject(ctx, by, &row)
	}
	return tx.ReplacePortalObject(ctx, by, &row, body)
}

// wrongID refuses another id than that of the object.
func wrongID(right string, none bool) error {
	if none {
		return rest.NotFound(noObject)
	}
	return rest.BadRequest("id: must be " + right)
}

// readConfiguration reads a configuration from the body and completes it.
func (s *Service) readConfiguration(c *rest.Call) (*model.Configuration, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	sent, err := model.Parse[model.Configuration](body)
	if err != nil {
		return nil, err
	}
	sent.OrgID = c.Who.Org
	complete(sent, body)
	var f object.Faults
	checkID(&f, "id", sent.ID)
	checkConfiguration(&f, "", sent)
	f.Add("HashKeys", s.hashProblem(body, sent))
	sent.HashKeys = !s.clear
	return sent, problemsOf(f)
}

// hashProblem returns the problem of HashKeys, or "": how keys are stored is decided for all
// organisations at once.
func (s *Service) hashProblem(body []byte, sent *model.Configuration) string {
	switch {
	case membersOf(body)["HashKeys"] == nil || sent.HashKeys == !s.clear:
		return ""
	case s.clear:
		return "must be false, or be left out: keys are stored in clear (keys.hash: none)"
	}
	return "must be true, or be left out: keys are stored as hashes alone, which no record can show them from (keys.hash)"
}

// complete sets defaults of members that were left out, so that a missing member never
// switches approval off. Letters without a text get the default text.
func complete(c *model.Configuration, sent []byte) {
	wanted := Defaults(c.OrgID)
	said := membersOf(sent)
	if said["require_key_approval"] == nil {
		c.RequireKeyApproval = wanted.RequireKeyApproval
	}
	if said["oauth_usage_limit"] == nil {
		c.OAuthUsageLimit = wanted.OAuthUsageLimit
	}
	letters := membersOf(membersOf(said["mail_options"])["email_copy"])
	have, want := &c.MailOptions.Copy, &wanted.MailOptions.Copy
	completeCopy(&have.Welcome, &want.Welcome, letters["welcome_email"])
	completeCopy(&have.Key, &want.Key, letters["key_email"])
	completeCopy(&have.ResetPassword, &want.ResetPassword, letters["reset_password_email"])
}

func completeCopy(c, wanted *model.MailCopy, sent json.RawMessage) {
	if membersOf(sent)["enabled"] == nil {
		c.Enabled = wanted.Enabled
	}
	if c.Subject == "" {
		c.Subject = wanted.Subject
	}
	if c.Body == "" {
		c.Body = wanted.Body
	}
}

// membersOf returns the members of a JSON object; nil if the text is no object.
func membersOf(text json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &members) != nil {
		return nil
	}
	return members
}
