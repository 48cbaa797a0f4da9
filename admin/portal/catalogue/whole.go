package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds of a catalogue. The answer of GET must fit into the body of PUT, with a margin for
// what is not entries.
const (
	maxEntries = 5_000
	maxBytes   = rest.MaxBody - 128<<10 // of all entries as they are stored
)

// storedCatalogue is a catalogue with all its entries, which are read one by one.
type storedCatalogue struct {
	ID      string            `json:"id"`
	OrgID   string            `json:"org_id"`
	APIs    []json.RawMessage `json:"apis"`
	Unknown object.Unknown    `json:"-"`
}

// Catalogue describes a catalogue in the OpenAPI document.
type Catalogue struct {
	// Id of the catalogue; required to replace one, and filled in when it is created.
	ID string `json:"id"`
	// Id of the organisation; filled in.
	OrgID string `json:"org_id"`
	// Entries in the order in which developers see them, at most 5,000.
	APIs []model.Entry `json:"apis"`
}

func (s *Service) getCatalogue(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.store.PortalObject(ctx, c.Who.Org, store.PortalCatalogue)
	if errors.Is(err, store.ErrNotFound) {
		return Catalogue{OrgID: c.Who.Org, APIs: []model.Entry{}}, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := s.store.CatalogueEntries(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	var shown storedCatalogue
	if faults := object.Decode(row.Body, &shown); len(faults) > 0 {
		return nil, fmt.Errorf("reading the stored catalogue: %s: %s", faults[0].Path, faults[0].Message)
	}
	shown.ID, shown.OrgID = row.ID, row.OrgID
	shown.APIs = make([]json.RawMessage, len(entries))
	for i := range entries {
		shown.APIs[i] = entries[i].Body
	}
	c.SetVersion(row.Version)
	body, err := object.Marshal(&shown)
	return json.RawMessage(body), err
}

func (s *Service) createCatalogue(ctx context.Context, c *rest.Call) (any, error) {
	head, sent, err := readCatalogue(c)
	if err != nil {
		return nil, err
	}
	head.ID = cmp.Or(head.ID, rest.NewID())
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := refuseSecond(ctx, tx, c.Who.Org, store.PortalCatalogue); err != nil {
			return err
		}
		body, err := headOf(head)
		if err != nil {
			return err
		}
		by := c.Author(c.Source())
		if err := tx.CreatePortalObject(ctx, by, &store.PortalObject{Kind: string(store.PortalCatalogue), ID: head.ID, Body: body}); err != nil {
			return err
		}
		return putEntries(ctx, tx, by, head.ID, sent)
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(head.ID, nil), nil
}

func (s *Service) updateCatalogue(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	head, sent, err := readCatalogue(c)
	if err != nil {
		return nil, err
	}
	if head.ID == "" {
		return nil, rest.BadRequest("id: must be that of the catalogue, as in the answer to GET")
	}
	var version int64
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		row, err := tx.LockPortalObject(ctx, c.Who.Org, store.PortalCatalogue)
		if err != nil {
			return err
		}
		if head.ID != row.ID {
			return wrongID(row.ID, false)
		}
		body, err := headOf(head)
		if err != nil {
			return err
		}
		by := c.Author(c.Source())
		if err := store.CheckVersion(have, row.Version); err != nil {
			return err
		}
		if version, err = tx.ReplacePortalObject(ctx, by, &row, body); err != nil {
			return err
		}
		return putEntries(ctx, tx, by, row.ID, sent)
	})
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

// headOf returns a catalogue as it is stored, without its entries.
func headOf(w *storedCatalogue) ([]byte, error) {
	head := *w
	head.APIs = []json.RawMessage{}
	return object.Marshal(&head)
}

// readCatalogue reads a catalogue from the body. It does not check references.
func readCatalogue(c *rest.Call) (*storedCatalogue, []*model.Entry, error) {
	body, err := c.Body()
	if err != nil {
		return nil, nil, err
	}
	var f object.Faults
	if fault := object.Check(body, rest.MaxBody); fault != nil {
		f.Add(fault.Path, fault.Message)
		return nil, nil, problemsOf(f)
	}
	w := new(storedCatalogue)
	if f = object.Decode(body, w); len(f) > 0 {
		return nil, nil, problemsOf(f)
	}
	w.OrgID = c.Who.Org
	checkID(&f, "id", w.ID)
	f.Count("apis", len(w.APIs), maxEntries)
	var entries []*model.Entry
	for i, raw := range w.APIs {
		if len(f) >= object.MaxFaults {
			break
		}
		entries = append(entries, readEntry(&f, object.Item("apis", i), raw, c.Who.Org))
	}
	if err := problemsOf(f); err != nil {
		return nil, nil, err
	}
	return w, entries, nil
}

func checkID(f *object.Faults, path, id string) {
	if id != "" && !definition.ValidID(id) {
		f.Add(path, "must be 1 to 128 letters, digits, dots, hyphens and underscores, and must not begin with a dot")
	}
}

// putEntries replaces the entries of a locked catalogue.
func putEntries(ctx context.Context, tx *store.Tx, by store.Author, id string, sent []*model.Entry) error {
	old, err := tx.CatalogueEntries(ctx, by.Org)
	if err != nil {
		return err
	}
	f, err := checkReferences(ctx, tx, by.Org, sent, "apis")
	if err != nil {
		return err
	}
	nameEntries(&f, sent, old)
	if err := problemsOf(f); err != nil {
		return err
	}
	rows, size := make([]store.CatalogueEntry, len(sent)), 0
	for i, e := range sent {
		if rows[i], err = rowOf(e); err != nil {
			return err
		}
		size += len(rows[i].Body)
	}
	if err := checkSize(len(rows), int64(size)); err != nil {
		return err
	}
	return tx.RewriteCatalogue(ctx, by, &store.CatalogueRewrite{ID: id, Old: old, New: rows})
}

func checkSize(entries int, size int64) error {
	if entries > maxEntries {
		return rest.BadRequest(fmt.Sprintf("A catalogue has at most %d entries", maxEntries))
	}
	if size > maxBytes {
		return rest.BadRequest(fmt.Sprintf("The entries of a catalogue are at most %d bytes together, not %d", int64(maxBytes), size))
	}
	return nil
}

// nameEntries sets missing ids of entries: that of the stored entry with the same API and
// policy, preferably with the same name, or else a new one. So a client that does not send
// ids does not change them.
func nameEntries(f *object.Faults, sent []*model.Entry, old []store.CatalogueEntry) {
	taken := make(map[string]bool, len(sent))
	for i, e := range sent {
		if e.ID != "" && taken[e.ID] {
			f.Addf(object.Member(object.Item("apis", i), "id"), "%q is there already", e.ID)
		}
		taken[e.ID] = true
	}
	type offer struct{ name, api, policy string }
	free := make(map[offer][]string, 2*len(old))
	for i := range old {
		if o := &old[i]; !taken[o.ID] {
			exact, alike := offer{o.Name, o.APIID, o.PolicyID}, offer{"", o.APIID, o.PolicyID}
			free[exact], free[alike] = append(free[exact], o.ID), append(free[alike], o.ID)
		}
	}
	claim := func(e *model.Entry, name string) {
		for _, id := range free[offer{name, e.APIID, e.PolicyID}] {
			if e.ID == "" && !taken[id] {
				e.ID, taken[id] = id, true
			}
		}
	}
	for _, e := range sent {
		claim(e, e.Name)
	}
	for _, e := range sent {
		claim(e, "")
		e.ID = cmp.Or(e.ID, rest.NewID())
	}
}
