package developers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// page is one page of developers.
type page struct {
	Data  []json.RawMessage `json:"Data"`
	Pages int64             `json:"Pages"`
}

// developerList describes a page.
type developerList struct {
	// Developers of the page.
	Data []model.Developer `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// Bounds of a list that is returned whole, and of one read for it.
const (
	maxWhole  = 10_000
	wholeStep = 1000
)

func (s *Service) list(ctx context.Context, c *rest.Call) (any, error) {
	if rows, err := rest.WantsRows(c); err != nil {
		return nil, err
	} else if rows {
		return s.listRows(ctx, c)
	}
	wanted, err := c.Page(true)
	if err != nil {
		return nil, err
	}
	filter, err := filterOf(c)
	if err != nil {
		return nil, err
	}
	answer := page{Data: []json.RawMessage{}}
	step := wanted
	if wanted.Max == 0 {
		step.Max = wholeStep
	}
	for {
		rows, total, err := s.Store.ListDevelopers(ctx, c.Who.Org, filter, step)
		if err != nil {
			return nil, err
		}
		if wanted.Max == 0 && total > maxWhole {
			return nil, rest.BadRequest(fmt.Sprintf("p must be a page from 1 on: there are %d, and at most %d are given out at once", total, maxWhole))
		}
		if answer.Data, err = s.appendShown(ctx, answer.Data, rows, c.Who.Role); err != nil {
			return nil, err
		}
		answer.Pages = rest.Pages(total, wanted)
		step.Skip += step.Max
		if wanted.Max != 0 || len(rows) < step.Max {
			return answer, nil
		}
	}
}

// filterOf returns the filter and the order that a call asks for.
func filterOf(c *rest.Call) (store.DeveloperFilter, error) {
	f := store.DeveloperFilter{Prefix: c.Query("q")}
	switch order := c.Query("sort"); order {
	case "", "email", "name":
		f.Order = store.ByAddress
	case "-email", "-name":
		f.Order = store.ByAddressDown
	case "created_at", "created":
		f.Order = store.ByAge
	case "-created_at", "-created":
		f.Order = store.ByAgeDown
	default:
		return f, rest.BadRequest(fmt.Sprintf("sort must be one of [email -email created_at -created_at], not %.40q", order))
	}
	switch c.Query("inactive") {
	case "":
	case "true":
		f.Inactive = new(true)
	case "false":
		f.Inactive = new(false)
	default:
		return f, rest.BadRequest("inactive must be true or false")
	}
	return f, nil
}

// appendShown appends developers as a caller may see them.
func (s *Service) appendShown(ctx context.Context, to []json.RawMessage, rows []store.Developer, who rest.Role) ([]json.RawMessage, error) {
	holdings, err := s.Store.HoldingsOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		r, err := s.recordOf(&rows[i], holdings[rows[i].ID])
		if err != nil {
			return nil, err
		}
		body, err := model.Write(shownTo(r, who))
		if err != nil {
			return nil, err
		}
		to = append(to, body)
	}
	return to, nil
}

// answer is a developer as the caller may see one.
func (s *Service) answer(ctx context.Context, c *rest.Call, id string) (any, error) {
	d, err := s.Store.DeveloperByID(ctx, c.Who.Org, id)
	if err != nil {
		return nil, rest.Missing(err, missing)
	}
	shown, err := s.appendShown(ctx, nil, []store.Developer{d}, c.Who.Role)
	if err != nil {
		return nil, err
	}
	c.SetVersion(d.Version)
	return shown[0], nil
}

func (s *Service) get(ctx context.Context, c *rest.Call) (any, error) {
	return s.answer(ctx, c, c.Param("id"))
}

// sent is a developer in the body of an operator's call.
type sent struct {
	record   *model.Developer
	fields   []byte
	extra    []byte
	password string
}

// newDeveloper describes the body of a call that creates a developer.
type newDeveloper struct {
	model.Developer

	// Password of a new developer, 6 to 1024 bytes; ignored afterwards. Default: none, and the
	// developer asks for a letter to choose one.
	Password string `json:"password,omitempty"`
}

func readDeveloper(c *rest.Call) (*sent, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	r, err := model.Parse[model.Developer](body)
	if err != nil {
		return nil, err
	}
	d := &sent{record: r}
	if d.extra, d.password, err = extraOf(body, r); err != nil {
		return nil, err
	}
	var problems []string
	if why := emailProblem(r.Email); why != "" {
		problems = append(problems, "email: "+why)
	}
	if r.PasswordMaxDays < 0 || r.PasswordMaxDays > maxDays {
		problems = append(problems, fmt.Sprintf("password_max_days: must be in 0…%d; 0 is for ever", maxDays))
	}
	for _, one := range []struct{ name, value string }{{"nonce", r.Nonce}, {"sso_key", r.SSOKey}} {
		if len(one.value) > maxValue || !rest.Printable(one.value) {
			problems = append(problems, fmt.Sprintf("%s: must be at most %d bytes of printable text", one.name, maxValue))
		}
	}
	if problems = append(problems, fieldProblems(r.Fields)...); problems != nil {
		return nil, rest.BadRequest("Validation failed", problems...)
	}
	d.fields, err = encodeFields(r.Fields)
	return d, err
}

// maxDays bounds password_max_days: a hundred years.
const maxDays = 36_500

// create creates a developer with a verified address, unless the body says that it is not
// verified.
func (s *Service) create(ctx context.Context, c *rest.Call) (any, error) {
	sent, err := readDeveloper(c)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	d := &store.Developer{ID: rest.NewID(), VerifiedAt: &now}
	sent.fill(d, s)
	if sent.password != "" {
		wanted, err := s.accept(ctx, d, "password", sent.password)
		if err != nil {
			return nil, err
		}
		d.PasswordHash, d.PasswordHistory, d.PasswordUpdated = wanted.Hash, []string{wanted.Hash}, wanted.At
	}
	err = s.Store.InTx(ctx, func(tx *store.Tx) error { return tx.CreateDeveloper(ctx, c.Author(c.Source()), d) })
	if err != nil {
		return nil, addressTaken(err)
	}
	c.SetVersion(d.Version)
	return rest.Done(d.ID, nil), nil
}

// fill copies what an operator may change into d.
func (r *sent) fill(d *store.Developer, s *Service) {
	d.Email, d.Inactive, d.PasswordMaxDays = r.record.Email, r.record.Inactive, int32(r.record.PasswordMaxDays)
	d.Nonce, d.SsoKey, d.Fields, d.Extra = r.record.Nonce, r.record.SSOKey, r.fields, r.extra
	switch verified := r.record.Verified; {
	case verified == nil:
	case !*verified:
		d.VerifiedAt = nil
	case d.VerifiedAt == nil:
		now := s.Now()
		d.VerifiedAt = &now
	}
}

func (s *Service) update(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	sent, err := readDeveloper(c)
	if err != nil {
		return nil, err
	}
	if sent.password != "" {
		return nil, rest.BadRequest("Validation failed", "password: is changed by POST /api/portal/developers/password/{id}")
	}
	ref := store.DeveloperRef{ID: c.Param("id"), Version: have}
	var d store.Developer
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		d, err = tx.UpdateDeveloper(ctx, c.Author(c.Source()), ref, func(d *store.Developer) error {
			sent.fill(d, s)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, addressTaken(rest.Missing(err, missing))
	}
	c.SetVersion(d.Version)
	return rest.Done("Data updated", nil), nil
}

func (s *Service) remove(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.delete(ctx, c.Author(c.Source()), c.Param("id")); err != nil {
		return nil, rest.Missing(err, missing)
	}
	return rest.Done("Data deleted", nil), nil
}

// delete deletes a developer with keys and requests.
func (s *Service) delete(ctx context.Context, by store.Author, id string) error {
	var hashes []string
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		d, err := tx.LockDeveloperWithRequests(ctx, by, id)
		if err != nil {
			return err
		}
		if hashes, err = s.Keys.RevokeAll(ctx, tx, by, id); err != nil {
			return err
		}
		return tx.DeleteDeveloper(ctx, by, &d)
	})
	if err != nil {
		return err
	}
	for _, hash := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		s.Deliver(hash)
	}
	s.Log.Info("developer deleted", "developer", id, "by", by.Name, "keys", len(hashes))
	return nil
}

// developerPassword is the body of a call that sets a developer's password.
type developerPassword struct {
	// Password to be in force, 6 to 1024 bytes; none of the last 5.
	Password string `json:"password"`
}

// choosePassword sets the password of a developer and ends all sessions.
func (s *Service) choosePassword(ctx context.Context, c *rest.Call) (any, error) {
	var sent developerPassword
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	d, err := s.Store.DeveloperByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, missing)
	}
	wanted, err := s.accept(ctx, &d, "password", sent.Password)
	if err != nil {
		return nil, err
	}
	if err := s.setPassword(ctx, c.Author(c.Source()), &d, wanted); err != nil {
		return nil, err
	}
	return rest.Done("Password changed", nil), nil
}
