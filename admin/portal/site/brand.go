package site

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/brand"
	"github.com/sluicegate/sluice/admin/portal/content"
)

// look is how the portal of an organisation looks.
type look struct {
	brand.Shown
	StyleID string // changes with the accents; "" for those of the site
}

// loadBrand finds out how the portal looks.
func (v *visit) loadBrand() error {
	if err := v.get("/api/portal/public/brand", &v.brand.Shown); err != nil {
		return err
	}
	if v.brand.Name == "" {
		v.brand.Name = "Developer portal"
	}
	if v.brand.Style != "" {
		sum := sha256.Sum256([]byte(v.brand.Style))
		v.brand.StyleID = hex.EncodeToString(sum[:6])
	}
	return nil
}

// showPage shows a page that the organisation wrote.
func showPage(v *visit) error {
	var found content.ShownPage
	if err := v.get("/api/portal/public/pages/"+escape(v.params["page"]), &found); err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "page", found.Title, &found)
}

func serveBrandStyle(v *visit) error {
	v.http.Response.Header.SetContentType("text/css; charset=utf-8")
	v.http.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	v.http.SetBodyString(v.brand.Style)
	return nil
}

func serveLogo(v *visit) error {
	answer, err := v.raw("/api/portal/public/brand/logo")
	if err != nil {
		return err
	}
	v.http.Response.Header.SetContentType("image/png")
	v.http.Response.Header.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	v.http.SetBody(answer)
	return nil
}
