// Package documents keeps what operators write for developers about APIs:
// descriptions in OpenAPI, GraphQL schemas and Markdown. Developers see them as
// package clean leaves them.
package documents

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

	"github.com/sluicegate/sluice/admin/portal/documents/clean"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/catalogue"
)

// maxDocuments is how many documents an organisation has, more or less: of several
// that come at once all are kept.
const maxDocuments = 5_000

// gone is what is said of documents that are not there.
const gone = "Could not retrieve portal object."

// Service answers for documents. Make one with New. It is safe for concurrent use.
type Service struct {
	store *store.Store
	turn  chan struct{} // holds one; reading a large document takes a processor for a while
}

// New returns a Service.
func New(st *store.Store) *Service { return &Service{store: st, turn: make(chan struct{}, 1)} }

// A Document is one as operators send and see it.
type Document struct {
	ID            string    `json:"id"`
	APIID         string    `json:"api_id" doc:"the API that it is about; empty: none in particular"`
	Name          string    `json:"name"`
	Kind          string    `json:"doc_type" enum:"openapi,swagger,graphql,markdown" doc:"swagger is another name for openapi"`
	Documentation string    `json:"documentation,omitempty" doc:"the text in base64: at most 2 MiB of OpenAPI 2 or 3 in JSON or YAML or of GraphQL SDL, 1 MiB of Markdown"`
	Size          int       `json:"size" doc:"bytes of the text"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
}

// documentList is one page of documents, without their texts.
type documentList struct {
	Data  []Document `json:"Data"`
	Pages int64      `json:"Pages"`
}

// kinds are the names of kinds on the wire.
var kinds = map[string]clean.Kind{
	"openapi": clean.OpenAPI, "swagger": clean.OpenAPI, "graphql": clean.GraphQL, "sdl": clean.GraphQL,
	"markdown": clean.Markdown, "md": clean.Markdown,
}

func (s *Service) list(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	filter := kept.DocumentFilter{Prefix: c.Query("q"), API: c.Query("api_id")}
	if name := c.Query("doc_type"); name != "" {
		kind, known := kinds[name]
		if !known {
			return nil, rest.BadRequest(wrongKind(name))
		}
		filter.Kind = string(kind)
	}
	rows, total, err := kept.ListDocuments(ctx, s.store, c.Who.Org, filter, page)
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

func (s *Service) get(ctx context.Context, c *rest.Call) (any, error) {
	row, err := kept.DocumentByID(ctx, s.store, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, gone)
	}
	c.SetVersion(row.Version)
	return Document{
		ID: row.ID, APIID: row.APIID, Name: row.Name, Kind: row.Kind, Documentation: base64.StdEncoding.EncodeToString([]byte(row.Source)),
		Size: len(row.Source), CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}, nil
}

func (s *Service) preview(ctx context.Context, c *rest.Call) (any, error) {
	shown, err := s.Show(ctx, c.Who.Org, c.Param("id"), c.Query("api_id"))
	if err != nil {
		return nil, rest.Missing(err, gone)
	}
	return Write(shown)
}

func (s *Service) create(ctx context.Context, c *rest.Call) (any, error) {
	d, err := s.read(ctx, c)
	if err != nil {
		return nil, err
	}
	d.ID = rest.NewID()
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := checkAPI(ctx, tx, d); err != nil {
			return err
		}
		if err := checkRoom(ctx, tx, d.OrgID); err != nil {
			return err
		}
		told, err := tell(d.Name, d.APIID, d.Kind, len(d.Source))
		if err != nil {
			return err
		}
		return kept.AddDocument(ctx, tx, c.Author(c.Source()), d, told)
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	return rest.Done(d.ID, nil), nil
}

func (s *Service) update(ctx context.Context, c *rest.Call) (any, error) {
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
		return nil, rest.Missing(err, gone)
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

func (s *Service) replace(ctx context.Context, tx *store.Tx, c *rest.Call, d *kept.NewDocument, have int64) (int64, error) {
	old, err := kept.LockDocument(ctx, tx, c.Who.Org, d.ID)
	if err != nil {
		return 0, err
	}
	if err := kept.Current(have, old.Version); err != nil {
		return 0, err
	}
	if err := checkAPI(ctx, tx, d); err != nil {
		return 0, err
	}
	before, err := tell(old.Name, old.APIID, old.Kind, int(old.Size))
	if err != nil {
		return 0, err
	}
	after, err := tell(d.Name, d.APIID, d.Kind, len(d.Source))
	if err != nil {
		return 0, err
	}
	return kept.ChangeDocument(ctx, tx, c.Author(c.Source()), d, kept.Told{Before: before, After: after})
}

// remove deletes a document, unless entries of the catalogue have it; with force
// these have none afterwards.
func (s *Service) remove(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		old, err := kept.LockDocument(ctx, tx, c.Who.Org, c.Param("id"))
		if err != nil {
			return err
		}
		if err := kept.Current(have, old.Version); err != nil {
			return err
		}
		if !c.Flag("force") {
			if err := checkUnused(ctx, tx, c.Who.Org, old.ID); err != nil {
				return err
			}
		}
		before, err := tell(old.Name, old.APIID, old.Kind, int(old.Size))
		if err != nil {
			return err
		}
		return kept.RemoveDocument(ctx, tx, c.Author(c.Source()), old.ID, before)
	})
	if err != nil {
		return nil, rest.Missing(err, "Could not retrieve object for deletion")
	}
	return rest.Done("Data deleted", nil), nil
}

func checkUnused(ctx context.Context, tx *store.Tx, org, id string) error {
	users, err := kept.DocumentUsers(ctx, tx, org, id)
	if err != nil || len(users) == 0 {
		return err
	}
	f := rest.Refuse(fasthttp.StatusConflict, "Entries of the catalogue have this document; change them or add ?force=true")
	for _, u := range users {
		f.Errors = append(f.Errors, u.ID+": "+u.Name)
	}
	return f
}

func checkRoom(ctx context.Context, tx *store.Tx, org string) error {
	n, err := kept.CountDocuments(ctx, tx, org)
	if err == nil && n >= maxDocuments {
		err = rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("There are %d documents already, which is as many as an organisation can have; delete some", n))
	}
	return err
}

func checkAPI(ctx context.Context, tx *store.Tx, d *kept.NewDocument) error {
	if d.APIID == "" {
		return nil
	}
	known, err := kept.HasAPI(ctx, tx, d.OrgID, d.APIID)
	if err == nil && !known {
		err = rest.BadRequest(fmt.Sprintf("api_id: names an API that does not exist: %.140q", d.APIID))
	}
	return err
}

// tell is what the audit log says of a document: not its text, which is long.
func tell(name, api, kind string, size int) ([]byte, error) {
	told, err := json.Marshal(map[string]any{"name": name, "api_id": api, "doc_type": kind, "size": size})
	if err != nil {
		return nil, fmt.Errorf("telling of a document: %w", err)
	}
	return told, nil
}

// read reads a document from the body and cleans it. Its id is as sent.
func (s *Service) read(ctx context.Context, c *rest.Call) (*kept.NewDocument, error) {
	var sent Document
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	var wrong []string
	kind, known := kinds[sent.Kind]
	if !known {
		wrong = append(wrong, wrongKind(sent.Kind))
	}
	if len(sent.Name) > 200 || !rest.Printable(sent.Name) {
		wrong = append(wrong, "name: must be one line of printable text of at most 200 bytes")
	}
	source, problem := decode(sent.Documentation)
	if problem != "" {
		wrong = append(wrong, "documentation: "+problem)
	}
	if len(wrong) > 0 {
		return nil, refuse(wrong...)
	}
	shown, err := s.clean(ctx, kind, source)
	if problem, ok := errors.AsType[*clean.Problem](err); ok {
		return nil, refuse("documentation: " + problem.Error())
	}
	if err != nil {
		return nil, err
	}
	return &kept.NewDocument{
		ID: sent.ID, OrgID: c.Who.Org, APIID: sent.APIID, Name: sent.Name, Kind: string(kind), Source: source, Clean: shown, Edition: clean.Edition,
	}, nil
}

func refuse(wrong ...string) error {
	message := "Validation failed"
	if len(wrong) == 1 {
		message += ": " + wrong[0]
	}
	return rest.BadRequest(message, wrong...)
}

// decode reads base64 in any of its spellings.
func decode(text string) (source, problem string) {
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

// clean cleans one document after the other.
func (s *Service) clean(ctx context.Context, kind clean.Kind, source string) (string, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", rest.Unavailable("Other documents are being read; try again")
	}
	defer func() { <-s.turn }()
	return clean.Clean(kind, source)
}
