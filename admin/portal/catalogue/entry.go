package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// maxEntry bounds one entry, in bytes of JSON.
const maxEntry = 128 << 10

// authTypes are the kinds of credentials of an entry. Without one an entry offers keys.
var authTypes = []string{"", "authToken", "basic", "oauth"}

// readEntry reads an entry at a path, and collects its faults. The entry is never nil.
func readEntry(f *object.Faults, at string, raw json.RawMessage, org string) *model.Entry {
	if len(raw) > maxEntry {
		f.Add(at, object.SizeMessage(len(raw), maxEntry))
		return new(model.Entry)
	}
	e, err := model.Parse[model.Entry](raw)
	if err != nil {
		if wrong, ok := errors.AsType[*definition.Problems](err); ok {
			for _, p := range *wrong {
				f.Add(object.Member(at, p.Path), p.Message)
			}
			return new(model.Entry)
		}
		f.Add(at, err.Error())
		return new(model.Entry)
	}
	if e.Config != nil {
		e.Config.OrgID = org
		completeOverride(e.Config, membersOf(raw)["config"])
	}
	checkEntry(f, at, e)
	return e
}

// completeOverride is complete for the configuration of an entry.
func completeOverride(c *model.Configuration, sent json.RawMessage) {
	said := membersOf(sent)
	if said["require_key_approval"] == nil {
		c.RequireKeyApproval = true
	}
	if said["oauth_usage_limit"] == nil {
		c.OAuthUsageLimit = -1
	}
}

func checkEntry(f *object.Faults, at string, e *model.Entry) {
	checkID(f, object.Member(at, "id"), e.ID)
	name := object.Member(at, "name")
	if strings.TrimSpace(e.Name) == "" {
		f.Add(name, "must be what developers know the offer by")
	}
	f.Add(name, lineProblem(e.Name, maxName))
	f.Add(object.Member(at, "short_description"), textProblem(e.ShortDescription, maxSummary))
	f.Add(object.Member(at, "long_description"), textProblem(e.LongDescription, maxText))
	f.Add(object.Member(at, "version"), lineProblem(e.Version, maxName))
	if !slices.Contains(authTypes, e.AuthType) {
		f.Addf(object.Member(at, "auth_type"), "must be authToken, basic or oauth, not %.40q", e.AuthType)
	}
	if e.PolicyID == "" && !e.IsKeyless {
		f.Add(object.Member(at, "policy_id"), "must be the policy that requests for the entry are for, or is_keyless must be true")
	}
	if e.PolicyID == "" && e.APIID == "" {
		f.Add(object.Member(at, "api_id"), "must be the API that the entry offers where there is no policy_id")
	}
	f.Count(object.Member(at, "fields"), len(e.Fields), maxFields)
	for _, field := range object.SortedKeys(e.Fields) {
		path := object.Entry(object.Member(at, "fields"), field)
		f.Add(path, textProblem(e.Fields[field], maxValue))
		f.Add(path, lineProblem(field, maxName))
	}
	if e.Config != nil {
		checkConfiguration(f, object.Member(at, "config"), e.Config)
	}
}

// checkReferences returns faults for objects that entries name and the organisation does
// not have. List is the path of the entries; "" for a single entry.
func checkReferences(ctx context.Context, tx *store.Tx, org string, entries []*model.Entry, list string) (f object.Faults, err error) {
	var named store.CatalogueNames
	for _, e := range entries {
		named.APIs, named.Policies = append(named.APIs, e.APIID), append(named.Policies, e.PolicyID)
		named.Documents = append(named.Documents, e.Documentation)
	}
	known, err := tx.KnownNames(ctx, org, named)
	if err != nil {
		return nil, err
	}
	apis, policies, documents := setOf(known.APIs), setOf(known.Policies), setOf(known.Documents)
	for i, e := range entries {
		at := list
		if list != "" {
			at = object.Item(list, i)
		}
		if e.APIID != "" && !apis[e.APIID] {
			f.Addf(object.Member(at, "api_id"), "names an API that does not exist: %.140q", e.APIID)
		}
		if e.PolicyID != "" && !policies[e.PolicyID] {
			f.Addf(object.Member(at, "policy_id"), "names a policy that does not exist: %.140q", e.PolicyID)
		}
		if e.Documentation != "" && !documents[e.Documentation] {
			f.Addf(object.Member(at, "documentation"), "names a document that does not exist: %.140q", e.Documentation)
		}
	}
	return f, nil
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// rowOf returns an entry as it is stored.
func rowOf(e *model.Entry) (store.CatalogueEntry, error) {
	body, err := model.Write(e)
	if err != nil {
		return store.CatalogueEntry{}, fmt.Errorf("catalogue entry %s: %w", e.ID, err)
	}
	return store.CatalogueEntry{
		ID: e.ID, Name: e.Name, APIID: e.APIID, PolicyID: e.PolicyID, Document: e.Documentation, Shown: e.Show, Body: body,
	}, nil
}

// entryList is one page of entries.
type entryList struct {
	// Entries of the page, in the order in which developers see them.
	Data []rest.Raw[model.Entry] `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
	// Reasons for which developers do not see an entry, by its id; entries that they see are left out.
	Hidden map[string][]string `json:"Hidden"`
}

func (s *Service) listEntries(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	filter := store.CatalogueFilter{Prefix: c.Query("q"), API: c.Query("api_id"), Policy: c.Query("policy_id")}
	switch c.Query("show") {
	case "":
	case "true", "false":
		filter.Shown = new(c.Query("show") == "true")
	default:
		return nil, rest.BadRequest("show must be true or false")
	}
	rows, total, err := s.store.ListCatalogueEntries(ctx, c.Who.Org, filter, page)
	if err != nil {
		return nil, err
	}
	list := entryList{Data: make([]rest.Raw[model.Entry], len(rows)), Pages: rest.Pages(total, page)}
	for i := range rows {
		list.Data[i] = rows[i].Body
	}
	list.Hidden, err = s.hidden(ctx, c.Who.Org, rows)
	return list, err
}

// hidden returns why developers do not see some of the entries, which may name deleted
// objects.
func (s *Service) hidden(ctx context.Context, org string, rows []store.CatalogueEntry) (map[string][]string, error) {
	apis, policies, err := s.store.OfferTargets(ctx, org, rows)
	if err != nil {
		return nil, err
	}
	why := make(map[string][]string)
	for _, row := range rows {
		if !row.Shown {
			why[row.ID] = append(why[row.ID], "show is false")
		}
		if row.APIID != "" && apis[row.APIID] == nil {
			why[row.ID] = append(why[row.ID], "the API "+row.APIID+" does not exist")
		}
		if row.PolicyID == "" {
			continue
		}
		if p := policies[row.PolicyID]; p == nil {
			why[row.ID] = append(why[row.ID], "the policy "+row.PolicyID+" does not exist")
		} else if p.State != "active" {
			why[row.ID] = append(why[row.ID], "the policy "+row.PolicyID+" is in the state "+p.State+", not active")
		}
	}
	return why, nil
}

func (s *Service) getEntry(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.store.CatalogueEntry(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	c.SetVersion(row.Version)
	return json.RawMessage(row.Body), nil
}

func (s *Service) createEntry(ctx context.Context, c *rest.Call) (any, error) {
	e, err := readOne(c)
	if err != nil {
		return nil, err
	}
	if e.ID == "" {
		e.ID = rest.NewID()
	}
	row, err := rowOf(e)
	if err != nil {
		return nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		size, err := touch(ctx, tx, c)
		if err != nil {
			return err
		}
		if err := checkOne(ctx, tx, c.Who.Org, e); err != nil {
			return err
		}
		if err := checkSize(int(size.Entries)+1, size.Bytes+int64(len(row.Body))); err != nil {
			return err
		}
		row.Position = size.Next
		return tx.CreateCatalogueEntry(ctx, c.Author(c.Source()), &row)
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(e.ID, nil), nil
}

func (s *Service) updateEntry(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	e, err := readOne(c)
	if err != nil {
		return nil, err
	}
	if id := c.Param("id"); e.ID == "" {
		e.ID = id
	} else if e.ID != id {
		return nil, rest.BadRequest("id: must be " + id + ", as in the path, or be left out")
	}
	row, err := rowOf(e)
	if err != nil {
		return nil, err
	}
	var version int64
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		size, old, err := lockEntry(ctx, tx, c, have)
		if err != nil {
			return err
		}
		if err := checkOne(ctx, tx, c.Who.Org, e); err != nil {
			return err
		}
		if err := checkSize(int(size.Entries), size.Bytes+int64(len(row.Body)-len(old.Body))); err != nil {
			return err
		}
		row.Position = old.Position
		version, err = tx.UpdateCatalogueEntry(ctx, c.Author(c.Source()), &old, &row)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

func (s *Service) deleteEntry(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		_, old, err := lockEntry(ctx, tx, c, have)
		if err != nil {
			return err
		}
		return tx.DeleteCatalogueEntry(ctx, c.Author(c.Source()), &old)
	})
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve object for deletion")
	}
	return rest.Done("Data deleted", nil), nil
}

// readOne reads an entry from the body.
func readOne(c *rest.Call) (*model.Entry, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	var f object.Faults
	e := readEntry(&f, "", body, c.Who.Org)
	return e, problemsOf(f)
}

func checkOne(ctx context.Context, tx *store.Tx, org string, e *model.Entry) error {
	f, err := checkReferences(ctx, tx, org, []*model.Entry{e}, "")
	if err != nil {
		return err
	}
	return problemsOf(f)
}

// touch creates the caller's catalogue if it does not exist, and locks it until the
// transaction ends.
func touch(ctx context.Context, tx *store.Tx, c *rest.Call) (store.CatalogueSize, error) {
	id := rest.NewID()
	body, err := headOf(&storedCatalogue{ID: id, OrgID: c.Who.Org})
	if err != nil {
		return store.CatalogueSize{}, err
	}
	return tx.TouchCatalogue(ctx, c.Author(c.Source()), id, body)
}

// lockEntry is touch for a change of the entry in the path, which must be at version have,
// or at any if have is 0.
func lockEntry(ctx context.Context, tx *store.Tx, c *rest.Call, have int64) (store.CatalogueSize, store.CatalogueEntry, error) {
	size, err := touch(ctx, tx, c)
	if err != nil {
		return store.CatalogueSize{}, store.CatalogueEntry{}, err
	}
	old, err := tx.CatalogueEntry(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return store.CatalogueSize{}, store.CatalogueEntry{}, err
	}
	return size, old, store.CheckVersion(have, old.Version)
}
