package credentials

import (
	"encoding/base64"
	"errors"
	"net/url"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// asked is a call with a form, and with a header where there is one.
func asked(header, form string) *rest.Call {
	http := new(fasthttp.RequestCtx)
	http.Request.Header.SetMethod("POST")
	http.Request.Header.SetContentType("application/x-www-form-urlencoded; charset=utf-8")
	if header != "" {
		http.Request.Header.Set("Authorization", header)
	}
	http.Request.SetBodyString(form)
	return &rest.Call{HTTP: http}
}

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestAClientShowsItselfInOnePlace(t *testing.T) {
	for _, c := range []struct{ header, form, id, secret, code string }{
		{"", "client_id=a&client_secret=b", "a", "b", ""},
		{basic("a:b"), "", "a", "b", ""},
		{basic("a%3Aa:b%25+b"), "client_id=a%3Aa", "a:a", "b% b", ""},
		{basic("a:b:c"), "", "a", "b:c", ""},
		{"bAsIc " + basic("a:b")[6:], "", "a", "b", ""},
		{"", "client_id=a", "", "", "invalid_client"},
		{"", "", "", "", "invalid_client"},
		{"Bearer x", "", "", "", "invalid_client"},
		{"Basic ***", "", "", "", "invalid_client"},
		{basic("no colon"), "", "", "", "invalid_client"},
		{basic("a:b"), "client_secret=b", "", "", "invalid_request"},
		{basic("a:b"), "client_id=c", "", "", "invalid_request"},
		{basic("%zz:b"), "", "", "", "invalid_request"},
		{"", "client_id=a&client_id=a&client_secret=b", "", "", "invalid_request"},
		{"", "client_id=a;client_secret=b", "", "", "invalid_request"},
	} {
		_, who, err := readForm(asked(c.header, c.form))
		r, _ := errors.AsType[*oauthError](err)
		switch {
		case c.code == "" && (err != nil || who.id != c.id || who.secret != c.secret):
			t.Errorf("%q %q: %+v, %v", c.header, c.form, who, err)
		case c.code != "" && (r == nil || r.Code != c.code):
			t.Errorf("%q %q: %+v, %v", c.header, c.form, who, err)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add("", "grant_type=client_credentials&client_id=a&client_secret=b")
	f.Add(basic("a:b"), "grant_type=client_credentials")
	f.Add(basic("%"), "grant_type=%00&scope=x;y")
	f.Add("Basic", "&&=&client_id")
	f.Fuzz(func(t *testing.T, header, form string) {
		values, who, err := readForm(asked(header, form))
		if err == nil {
			err = checkGrant(values)
		}
		if err != nil {
			r, known := errors.AsType[*oauthError](err)
			if !known || r.status != 400 && r.status != 401 || r.Description == "" {
				t.Fatalf("%q %q: %#v", header, form, err)
			}
			return
		}
		if len(form) > maxForm || values.Get("grant_type") != "client_credentials" {
			t.Fatalf("%q was taken", form)
		}
		again, err := url.ParseQuery(form)
		if err != nil {
			t.Fatalf("%q was taken: %v", form, err)
		}
		for name, all := range again {
			if len(all) != 1 {
				t.Fatalf("%q has %s %d times", form, name, len(all))
			}
		}
		if header == "" && (who.id == "" || who.secret == "") || header != "" && again.Has("client_secret") {
			t.Fatalf("%q %q: %+v was taken", header, form, who)
		}
	})
}
