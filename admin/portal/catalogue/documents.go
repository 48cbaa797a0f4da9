package catalogue

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/clean"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// maxDocuments bounds the documents of an organisation. Concurrent calls may exceed it
// slightly.
const maxDocuments = 5_000

// Documents manages documentation that operators write about APIs: OpenAPI documents,
// GraphQL schemas and Markdown, which developers see as package clean leaves them. Make
// one with NewDocuments. It is safe for concurrent use.
type Documents struct {
	store *store.Store
	turn  chan struct{} // capacity 1; cleaning a large document is CPU-bound
}

// NewDocuments returns Documents.
func NewDocuments(st *store.Store) *Documents {
	return &Documents{store: st, turn: make(chan struct{}, 1)}
}

// A Document is a document as operators send and see it.
type Document struct {
	// Id of the document; filled in.
	ID string `json:"id"`
	// Id of the API that the document is about; empty: none in particular.
	APIID string `json:"api_id"`
	// Name of the document.
	Name string `json:"name"`
	// Kind of the document; swagger is another name for openapi.
	Kind string `json:"doc_type" enum:"openapi,swagger,graphql,markdown"`
	// Text in base64: at most 2 MiB of OpenAPI 2 or 3 in JSON or YAML or of GraphQL SDL, 1 MiB of
	// Markdown. Lists leave it out.
	Documentation string `json:"documentation,omitempty"`
	// Bytes of the text; filled in.
	Size int `json:"size"`
	// Time at which the document was created; filled in.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last change; filled in.
	UpdatedAt time.Time `json:"updated_at"`
}

// documentList is one page of documents, without their texts.
type documentList struct {
	// Documents of the page, without their texts.
	Data []Document `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// documentKinds are the names of kinds on the wire.
var documentKinds = map[string]clean.Kind{
	"openapi": clean.OpenAPI, "swagger": clean.OpenAPI, "graphql": clean.GraphQL, "sdl": clean.GraphQL,
	"markdown": clean.Markdown, "md": clean.Markdown,
}

func (s *Documents) list(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	filter := store.DocumentFilter{Prefix: c.Query("q"), API: c.Query("api_id")}
	if name := c.Query("doc_type"); name != "" {
		kind, known := documentKinds[name]
		if !known {
			return nil, rest.BadRequest(wrongKind(name))
		}
		filter.Kind = string(kind)
	}
	rows, total, err := s.store.ListDocuments(ctx, c.Who.Org, filter, page)
	if err != nil {
		return nil, err
	}
	list := documentList{Data: make([]Document, 0, len(rows)), Pages: rest.Pages(total, page)}
	for _, row := range rows {
		list.Data = append(list.Data, Document{
			ID: row.ID, APIID: row.APIID, Name: row.Name, Kind: row.Kind, Size: int(row.Size), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
		})
	}
	return list, nil
}

func wrongKind(name string) string {
	return fmt.Sprintf("doc_type: must be openapi (or swagger), graphql or markdown, not %.40q", name)
}

func (s *Documents) get(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.store.DocumentByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	c.SetVersion(row.Version)
	return Document{
		ID: row.ID, APIID: row.APIID, Name: row.Name, Kind: row.Kind, Documentation: base64.StdEncoding.EncodeToString([]byte(row.Source)),
		Size: len(row.Source), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}, nil
}

func (s *Documents) preview(ctx context.Context, c *rest.Call) (any, error) {
	shown, err := s.Show(ctx, c.Who.Org, c.Param("id"), c.Query("api_id"))
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	return writeDocumentation(shown)
}

func (s *Documents) create(ctx context.Context, c *rest.Call) (any, error) {
	d, err := s.read(ctx, c)
	if err != nil {
		return nil, err
	}
	d.ID = rest.NewID()
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := checkDocumentAPI(ctx, tx, d); err != nil {
			return err
		}
		if err := checkDocumentCount(ctx, tx, d.OrgID); err != nil {
			return err
		}
		told, err := documentAudit(d.Name, d.APIID, d.Kind, len(d.Source))
		if err != nil {
			return err
		}
		return tx.CreateDocument(ctx, c.Author(c.Source()), d, told)
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(d.ID, nil), nil
}

func (s *Documents) update(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	d, err := s.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if id := c.Param("id"); d.ID != "" && d.ID != id {
		return nil, rest.BadRequest("id: must be " + id + ", as in the path, or be left out")
	}
	d.ID = c.Param("id")
	var version int64
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		version, err = s.replace(ctx, tx, c, d, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

func (s *Documents) replace(ctx context.Context, tx *store.Tx, c *rest.Call, d *store.NewDocument, have int64) (int64, error) {
	old, err := tx.LockDocument(ctx, c.Who.Org, d.ID)
	if err != nil {
		return 0, err
	}
	if err := store.CheckVersion(have, old.Version); err != nil {
		return 0, err
	}
	if err := checkDocumentAPI(ctx, tx, d); err != nil {
		return 0, err
	}
	before, err := documentAudit(old.Name, old.APIID, old.Kind, int(old.Size))
	if err != nil {
		return 0, err
	}
	after, err := documentAudit(d.Name, d.APIID, d.Kind, len(d.Source))
	if err != nil {
		return 0, err
	}
	return tx.UpdateDocument(ctx, c.Author(c.Source()), d, store.DocumentAudit{Before: before, After: after})
}

// remove deletes a document. If entries of the catalogue have it, force is needed, and
// they have none afterwards.
func (s *Documents) remove(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		old, err := tx.LockDocument(ctx, c.Who.Org, c.Param("id"))
		if err != nil {
			return err
		}
		if err := store.CheckVersion(have, old.Version); err != nil {
			return err
		}
		if !c.Flag("force") {
			if err := checkDocumentUnused(ctx, tx, c.Who.Org, old.ID); err != nil {
				return err
			}
		}
		before, err := documentAudit(old.Name, old.APIID, old.Kind, int(old.Size))
		if err != nil {
			return err
		}
		return tx.DeleteDocument(ctx, c.Author(c.Source()), old.ID, before)
	})
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve object for deletion")
	}
	return rest.Done("Data deleted", nil), nil
}

func checkDocumentUnused(ctx context.Context, tx *store.Tx, org, id string) error {
	users, err := tx.EntriesWithDocument(ctx, org, id)
	if err != nil || len(users) == 0 {
		return err
	}
	f := rest.Refuse(fasthttp.StatusConflict, "Entries of the catalogue have this document; change them or add ?force=true")
	for _, u := range users {
		f.Errors = append(f.Errors, u.ID+": "+u.Name)
	}
	return f
}

func checkDocumentCount(ctx context.Context, tx *store.Tx, org string) error {
	n, err := tx.CountDocuments(ctx, org)
	if err == nil && n >= maxDocuments {
		err = rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("There are %d documents already, which is as many as an organisation can have; delete some", n))
	}
	return err
}

func checkDocumentAPI(ctx context.Context, tx *store.Tx, d *store.NewDocument) error {
	if d.APIID == "" {
		return nil
	}
	known, err := tx.HasAPI(ctx, d.OrgID, d.APIID)
	if err == nil && !known {
		err = rest.BadRequest(fmt.Sprintf("api_id: names an API that does not exist: %.140q", d.APIID))
	}
	return err
}

// documentAudit returns a document for the audit log, without its text.
func documentAudit(name, api, kind string, size int) ([]byte, error) {
	told, err := json.Marshal(map[string]any{"name": name, "api_id": api, "doc_type": kind, "size": size})
	if err != nil {
		return nil, fmt.Errorf("telling of a document: %w", err)
	}
	return told, nil
}

// read reads a document from the body and cleans it. Its id is as sent.
func (s *Documents) read(ctx context.Context, c *rest.Call) (*store.NewDocument, error) {
	var sent Document
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	var wrong []string
	kind, known := documentKinds[sent.Kind]
	if !known {
		wrong = append(wrong, wrongKind(sent.Kind))
	}
	if len(sent.Name) > 200 || !rest.Printable(sent.Name) {
		wrong = append(wrong, "name: must be one line of printable text of at most 200 bytes")
	}
	source, problem := decodeBase64(sent.Documentation)
	if problem != "" {
		wrong = append(wrong, "documentation: "+problem)
	}
	if len(wrong) > 0 {
		return nil, refuseDocument(wrong...)
	}
	shown, err := s.clean(ctx, kind, source)
	if problem, ok := errors.AsType[*clean.Problem](err); ok {
		return nil, refuseDocument("documentation: " + problem.Error())
	}
	if err != nil {
		return nil, err
	}
	return &store.NewDocument{
		ID: sent.ID, OrgID: c.Who.Org, APIID: sent.APIID, Name: sent.Name, Kind: string(kind), Source: source, Clean: shown, Edition: clean.Edition,
	}, nil
}

func refuseDocument(wrong ...string) error {
	message := "Validation failed"
	if len(wrong) == 1 {
		message += ": " + wrong[0]
	}
	return rest.BadRequest(message, wrong...)
}

// decodeBase64 decodes base64 in any alphabet, with or without padding and line ends.
func decodeBase64(text string) (source, problem string) {
	text = strings.NewReplacer("\r", "", "\n", "", " ", "", "\t", "", "-", "+", "_", "/").Replace(text)
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	switch {
	case text == "":
		return "", "must be the text of the document in base64"
	case err != nil:
		return "", "must be base64: " + err.Error()
	case len(raw) > clean.MaxBytes:
		return "", fmt.Sprintf("is %d bytes; at most %d are read", len(raw), clean.MaxBytes)
	case !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0):
		return "", "must be text in UTF-8 without the character U+0000"
	}
	return string(raw), ""
}

// clean cleans a document. Documents are cleaned one at a time.
func (s *Documents) clean(ctx context.Context, kind clean.Kind, source string) (string, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", rest.Unavailable("Other documents are being read; try again")
	}
	defer func() { <-s.turn }()
	return clean.Clean(kind, source)
}
