// Package brand is how the portal of an organisation looks: its name and logo, accents,
// texts and links.
package brand

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // formats of logos
	"image/png"
	"net/url"
	"strings"

	_ "golang.org/x/image/webp" // another one

	"github.com/sluicegate/sluice/admin/portal/clean"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// A Brand is how a portal looks. Omitted members have the site's own look.
type Brand struct {
	// Name of the portal, at most 80 bytes; empty: that of the site.
	// Example: "Example developers"
	Name string `json:"name"`
	// Colour of links and buttons on light surfaces; its contrast is at least 4.5. Empty: that of the
	// site.
	// Example: "#0a5bd0"
	Accent string `json:"accent"`
	// Colour of links and buttons on dark surfaces; its contrast is at least 4.5. Empty: that of the
	// site.
	// Example: "#8ab4f8"
	AccentDark string `json:"accent_dark"`
	// Markdown above the catalogue; empty: none.
	Welcome string `json:"welcome"`
	// Markdown below every page; empty: none.
	Footer string `json:"footer"`
	// Links below every page, at most 12.
	Links []Link `json:"links"`
	// PNG, JPEG or WebP in base64, at most 200 KB and 1024 pixels a side, which is encoded anew;
	// empty: no logo. Answers leave it out. Default: it stays.
	Logo *string `json:"logo,omitempty"`
	// Id of the logo, which changes with it; empty: there is none. Ignored in a request.
	LogoID string `json:"logo_id"`
}

// A Link leads from every page to another.
type Link struct {
	// Text of the link.
	Text string `json:"text"`
	// Address that it leads to: https, http or mailto, or a path of the portal.
	URL string `json:"url"`
}

// Shown is a brand as the portal's pages need it.
type Shown struct {
	// Name of the portal; empty: that of the site.
	Name string `json:"name"`
	// HTML above the catalogue, sanitised; empty: none.
	Welcome string `json:"welcome_html"`
	// HTML below every page, sanitised; empty: none.
	Footer string `json:"footer_html"`
	// Links below every page.
	Links []Link `json:"links"`
	// CSS with the accent colours; empty: those of the site.
	Style string `json:"style"`
	// Id of the logo, which changes with it; empty: there is none.
	LogoID string `json:"logo_id"`
}

// Visitor returns the organisation of a call that needs no credential.
type Visitor func(ctx context.Context, c *rest.Call) (org string, err error)

// Service keeps brands. Make one with New.
type Service struct {
	store   *store.Store
	visitor Visitor
}

// New returns a Service.
func New(st *store.Store, visitor Visitor) *Service { return &Service{st, visitor} }

// Bounds of a brand.
const (
	maxName  = 80
	maxText  = 16 << 10
	maxLinks = 12
	maxLogo  = 200 << 10
	maxSide  = 1024
)

// Routes lists the routes of brands.
func (s *Service) Routes() []rest.Route {
	const path, tag = "/api/portal/brand", "Catalogue"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "Get how the portal looks", Tag: tag, Role: rest.Viewer,
			Reply: Brand{}, Handle: s.get,
		},
		{
			Method: "PUT", Path: path, Summary: "Replace how the portal looks; accents that cannot be read are refused with the nearest that can", Tag: tag, Role: rest.Editor,
			Body: Brand{}, Reply: rest.Envelope{}, Match: true, Wrong: []int{400, 409, 413, 415}, Handle: s.put,
		},
		{
			Method: "GET", Path: "/api/portal/public/brand", Summary: "How the portal looks, for its pages", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: Shown{}, Wrong: []int{404, 503}, Handle: s.show,
		},
		{
			Method: "GET", Path: "/api/portal/public/brand/logo", Summary: "The portal's logo, a PNG", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Type: "image/png", Reply: "", Wrong: []int{404, 503}, Handle: s.logo,
		},
	}
}

// load returns an organisation's brand and its version; version 0: there is none.
func (s *Service) load(ctx context.Context, org string) (*Brand, int64, error) {
	b := &Brand{Links: []Link{}}
	row, err := s.store.PortalObject(ctx, org, store.PortalBrand)
	if errors.Is(err, store.ErrNotFound) {
		return b, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(row.Body, b); err != nil {
		return nil, 0, fmt.Errorf("reading the stored brand: %w", err)
	}
	return b, row.Version, nil
}

func (s *Service) get(ctx context.Context, c *rest.Call) (any, error) {
	b, version, err := s.load(ctx, c.Who.Org)
	if err == nil && version > 0 {
		c.SetVersion(version)
	}
	return b, err
}

func (s *Service) show(ctx context.Context, c *rest.Call) (any, error) {
	org, err := s.visitor(ctx, c)
	if err != nil {
		return nil, err
	}
	b, _, err := s.load(ctx, org)
	if err != nil {
		return nil, err
	}
	shown := &Shown{Name: b.Name, Links: b.Links, Style: b.style(), LogoID: b.LogoID}
	if shown.Welcome, err = asHTML(b.Welcome); err == nil {
		shown.Footer, err = asHTML(b.Footer)
	}
	return shown, err
}

// asHTML returns Markdown as sanitised HTML.
func asHTML(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return clean.Clean(clean.Markdown, text)
}

// style returns the accents as CSS.
func (b *Brand) style() string {
	if b.Accent == "" && b.AccentDark == "" {
		return ""
	}
	onLight, onDark := colour{0x0a, 0x5b, 0xd0}, colour{0x79, 0xae, 0xfc}
	if c, ok := parseColour(b.Accent); ok {
		onLight = c
	}
	if c, ok := parseColour(b.AccentDark); ok {
		onDark = c
	}
	return fmt.Sprintf(":root { --accent: light-dark(%s, %s); --accent-hover: light-dark(%s, %s) }\n",
		onLight, onDark, onLight.mix(black, 0.2), onDark.mix(white, 0.25))
}

func (s *Service) logo(ctx context.Context, c *rest.Call) (any, error) {
	org, err := s.visitor(ctx, c)
	if err != nil {
		return nil, err
	}
	row, err := s.store.PortalObject(ctx, org, store.PortalLogo)
	if err != nil {
		return nil, rest.Missing(err, "The portal has no logo")
	}
	var stored storedLogo
	if err := json.Unmarshal(row.Body, &stored); err != nil {
		return nil, fmt.Errorf("reading the stored logo: %w", err)
	}
	if len(stored.PNG) == 0 {
		return nil, rest.NotFound("The portal has no logo")
	}
	h := &c.HTTP.Response.Header
	h.SetContentType("image/png")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "public, max-age=3600")
	c.HTTP.SetBody(stored.PNG)
	return nil, nil
}

// storedLogo is a logo in the database.
type storedLogo struct {
	PNG []byte `json:"png"`
}

func (s *Service) put(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	sent := new(Brand)
	if err := c.Decode(sent); err != nil {
		return nil, err
	}
	picture, problems := sent.check()
	if len(problems) > 0 {
		message := "Validation failed"
		if len(problems) == 1 {
			message += ": " + problems[0]
		}
		return nil, rest.BadRequest(message, problems...)
	}
	var version int64
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		version, err = save(ctx, tx, c, &change{sent, picture, have})
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(version)
	return rest.Done("Data updated", nil), nil
}

// A change is a brand to be stored, with its logo as PNG; nil: none was sent.
type change struct {
	brand   *Brand
	picture []byte
	have    int64 // version that the caller saw; 0: any
}

func save(ctx context.Context, tx *store.Tx, c *rest.Call, ch *change) (version int64, err error) {
	by := c.Author(c.Source())
	row, err := tx.LockPortalObject(ctx, c.Who.Org, store.PortalBrand)
	fresh := errors.Is(err, store.ErrNotFound)
	if err != nil && !fresh {
		return 0, err
	}
	if err := store.CheckVersion(ch.have, row.Version); err != nil {
		return 0, err
	}
	ch.brand.LogoID = ""
	switch {
	case ch.brand.Logo != nil:
		if ch.brand.LogoID, err = saveLogo(ctx, tx, c, ch.picture); err != nil {
			return 0, err
		}
	case !fresh:
		var before Brand
		if err := json.Unmarshal(row.Body, &before); err != nil {
			return 0, fmt.Errorf("reading the stored brand: %w", err)
		}
		ch.brand.LogoID = before.LogoID
	}
	ch.brand.Logo = nil
	if ch.brand.Links == nil {
		ch.brand.Links = []Link{}
	}
	body, err := rest.Encode(ch.brand)
	if err != nil {
		return 0, err
	}
	if fresh {
		return 1, tx.CreatePortalObject(ctx, by, &store.PortalObject{Kind: string(store.PortalBrand), ID: rest.NewID(), Body: body})
	}
	return tx.ReplacePortalObject(ctx, by, &row, body)
}

// saveLogo stores a logo, or none, and returns its id.
func saveLogo(ctx context.Context, tx *store.Tx, c *rest.Call, picture []byte) (id string, err error) {
	body, err := rest.Encode(storedLogo{picture})
	if err != nil {
		return "", err
	}
	if len(picture) > 0 {
		id = rest.NewID()[:12]
	}
	by := c.Author(c.Source())
	row, err := tx.LockPortalObject(ctx, c.Who.Org, store.PortalLogo)
	if errors.Is(err, store.ErrNotFound) {
		return id, tx.CreatePortalObject(ctx, by, &store.PortalObject{Kind: string(store.PortalLogo), ID: rest.NewID(), Body: body})
	}
	if err == nil {
		_, err = tx.ReplacePortalObject(ctx, by, &row, body)
	}
	return id, err
}

// check returns the problems of a brand, and its logo as PNG.
func (b *Brand) check() (picture []byte, problems []string) {
	add := func(path, why string) {
		if why != "" {
			problems = append(problems, path+": "+why)
		}
	}
	if len(b.Name) > maxName || !rest.Printable(b.Name) {
		add("name", fmt.Sprintf("must be printable text of at most %d bytes", maxName))
	}
	if b.Accent != "" {
		add("accent", light.check(b.Accent))
	}
	if b.AccentDark != "" {
		add("accent_dark", dark.check(b.AccentDark))
	}
	for _, text := range []struct{ path, markdown string }{{"welcome", b.Welcome}, {"footer", b.Footer}} {
		if len(text.markdown) > maxText {
			add(text.path, fmt.Sprintf("has %d bytes; at most %d are allowed", len(text.markdown), maxText))
		} else if _, err := asHTML(text.markdown); err != nil {
			add(text.path, err.Error())
		}
	}
	if len(b.Links) > maxLinks {
		add("links", fmt.Sprintf("are %d; at most %d are allowed", len(b.Links), maxLinks))
	}
	for i, l := range b.Links {
		add(fmt.Sprintf("links[%d]", i), l.Problem())
	}
	if b.Logo == nil || *b.Logo == "" {
		return nil, problems
	}
	picture, why := readLogo(*b.Logo)
	add("logo", why)
	return picture, problems
}

// Problem returns what is wrong with a link, or "".
func (l *Link) Problem() string {
	u, err := url.Parse(l.URL)
	switch {
	case l.Text == "" || len(l.Text) > maxName || !rest.Printable(l.Text):
		return fmt.Sprintf("text must be 1…%d bytes of printable text", maxName)
	case err != nil || len(l.URL) > rest.MaxText || !rest.Printable(l.URL) || strings.ContainsAny(l.URL, " \\"):
		return "url must be an address such as https://example.com/terms, or a path"
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(l.URL, "/") && !strings.HasPrefix(l.URL, "//"):
		return ""
	case (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" || u.Scheme == "mailto" && u.Opaque != "":
		return ""
	}
	return "url must begin with https://, http:// or mailto:, or be a path"
}

// readLogo returns a picture written anew as PNG, so that it holds nothing but pixels.
func readLogo(text string) (picture []byte, why string) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, "must be a picture in base64"
	}
	if len(data) > maxLogo {
		return nil, fmt.Sprintf("has %d bytes; at most %d are allowed", len(data), maxLogo)
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, "must be a PNG, a JPEG or a WebP picture"
	}
	if size.Width > maxSide || size.Height > maxSide || size.Width < 1 || size.Height < 1 {
		return nil, fmt.Sprintf("is %d by %d pixels; at most %d a side are allowed", size.Width, size.Height, maxSide)
	}
	pixels, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, "cannot be read to its end"
	}
	var b bytes.Buffer
	if err := png.Encode(&b, pixels); err != nil {
		return nil, "cannot be written as a PNG"
	}
	if b.Len() > 2*maxLogo {
		return nil, "is too large when it is written as a PNG; send one with fewer pixels"
	}
	return b.Bytes(), ""
}
