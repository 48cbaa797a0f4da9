package site

import (
	"github.com/valyala/fasthttp"
)

// brand is how an organisation's portal looks.
type brand struct {
	Name    string      `json:"name"`
	Welcome string      `json:"welcome_html"`
	Footer  string      `json:"footer_html"`
	Links   []brandLink `json:"links"`
	Style   string      `json:"-"` // version of the colours; "" for those of the site
	Logo    string      `json:"-"` // version of the logo; "" for none
}

type brandLink struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

func (v *visit) loadBrand() error {
	v.brand = brand{Name: "Developer portal"}
	return nil
}

func serveBrandStyle(v *visit) error {
	return &fault{Status: fasthttp.StatusNotFound, Message: "There is no such page."}
}

func serveLogo(v *visit) error {
	return &fault{Status: fasthttp.StatusNotFound, Message: "There is no such page."}
}
