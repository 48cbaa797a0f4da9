package catalogue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/catalogue"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// gone is what is said of objects that are not there.
const gone = "Could not retrieve portal object."

func (s *Service) getConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	row, err := kept.Get(ctx, s.store, c.Who.Org, kept.Configuration)
	if errors.Is(err, store.ErrNotFound) {
		return record.Write(Defaults(c.Who.Org))
	}
	if err != nil {
		return nil, err
	}
	found, err := configurationOf(&row)
	if err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	return record.Write(found)
}

func (s *Service) createConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	sent, err := readConfiguration(c)
	if err != nil {
		return nil, err
	}
	if sent.ID == "" {
		sent.ID = rest.NewID()
	}
	body, err := record.Write(sent)
	if err != nil {
		return nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := refuseSecond(ctx, tx, c.Who.Org, kept.Configuration); err != nil {
			return err
		}
		return kept.Create(ctx, tx, c.Author(c.Source()), &kept.Object{Kind: string(kept.Configuration), ID: sent.ID, Body: body})
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(sent.ID, nil), nil
}

// refuseSecond says no where the organisation has the object already.
func refuseSecond(ctx context.Context, tx *store.Tx, org string, kind kept.Kind) error {
	row, err := kept.Lock(ctx, tx, org, kind)
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

// updateConfiguration replaces a configuration. Where none is stored, what is
// replaced are the defaults.
func (s *Service) updateConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	sent, err := readConfiguration(c)
	if err != nil {
		return nil, err
	}
	var version int64
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		version, err = putConfiguration(ctx, tx, c, sent, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, gone)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

func putConfiguration(ctx context.Context, tx *store.Tx, c *rest.Call, sent *record.Configuration, have int64) (version int64, err error) {
	row, err := kept.Lock(ctx, tx, c.Who.Org, kept.Configuration)
	none := errors.Is(err, store.ErrNotFound) && have == 0
	if err != nil && !none {
		return 0, err
	}
	if none {
		row = kept.Object{Kind: string(kept.Configuration), ID: rest.NewID()}
	}
	if sent.ID != "" && sent.ID != row.ID {
		return 0, wrongID(row.ID, none)
	}
	if err := kept.Current(have, row.Version); err != nil {
		return 0, err
	}
	sent.ID = row.ID
	body, err := record.Write(sent)
	if err != nil {
		return 0, err
	}
	by := c.Author(c.Source())
	if none {
		row.Body = body
		return 1, kept.Create(ctx, tx, by, &row)
	}
	return kept.Replace(ctx, tx, by, &row, body)
}

// wrongID says which id is right.
func wrongID(right string, none bool) error {
	if none {
		return rest.NotFound(gone)
	}
	return rest.BadRequest("id: must be " + right)
}

// readConfiguration reads a configuration from the body and completes it.
func readConfiguration(c *rest.Call) (*record.Configuration, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	sent, err := record.Parse[record.Configuration](body)
	if err != nil {
		return nil, err
	}
	sent.OrgID = c.Who.Org
	complete(sent, body)
	var f object.Faults
	checkID(&f, "id", sent.ID)
	checkConfiguration(&f, "", sent)
	return sent, problemsOf(f)
}

// complete gives members that were left out their defaults: no request may come to
// be approved because somebody forgot a member. Letters without a text get one.
func complete(c *record.Configuration, sent []byte) {
	wanted := Defaults(c.OrgID)
	said := membersOf(sent)
	if said["require_key_approval"] == nil {
		c.RequireKeyApproval = wanted.RequireKeyApproval
	}
	if said["oauth_usage_limit"] == nil {
		c.OAuthUsageLimit = wanted.OAuthUsageLimit
	}
	if said["HashKeys"] == nil {
		c.HashKeys = wanted.HashKeys
	}
	letters := membersOf(membersOf(said["mail_options"])["email_copy"])
	have, want := &c.MailOptions.Copy, &wanted.MailOptions.Copy
	completeCopy(&have.Welcome, &want.Welcome, letters["welcome_email"])
	completeCopy(&have.Key, &want.Key, letters["key_email"])
	completeCopy(&have.ResetPassword, &want.ResetPassword, letters["reset_password_email"])
}

func completeCopy(c, wanted *record.MailCopy, sent json.RawMessage) {
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

// membersOf returns the members of a JSON object; nil where it is none, or not
// there.
func membersOf(text json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &members) != nil {
		return nil
	}
	return members
}
