package requests

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
)

// maxAbout bounds each text about a client, in bytes.
const maxAbout = 2000

// Paths are where callers say what a client is.
type Paths struct{ Redirect, App, Use string }

// clientPaths are those of key requests.
var clientPaths = Paths{"oauth_info.redirect_uri", "fields.oauth_app_description", "fields.oauth_use_case"}

// clientOf is what a request says of the client that it asks for.
func clientOf(r *record.KeyRequest) Client {
	return Client{
		Redirect: r.OAuthInfo.RedirectURI, App: fieldText(r, "oauth_app_description"), Use: fieldText(r, "oauth_use_case"),
	}
}

// CheckClient refuses texts about a client that cannot be kept, and URIs that would
// run something in the browser of who follows them.
func CheckClient(c *Client, at Paths) error {
	var problems []string
	for _, one := range []struct{ path, text string }{{at.Redirect, c.Redirect}, {at.App, c.App}, {at.Use, c.Use}} {
		if len(one.text) > maxAbout || strings.ContainsRune(one.text, 0) {
			problems = append(problems, fmt.Sprintf("%s: must be text of at most %d bytes without the character U+0000", one.path, maxAbout))
		}
	}
	if problems == nil && c.Redirect != "" && !isRedirect(c.Redirect) {
		problems = append(problems, at.Redirect+": must be an https:// or http:// URL without a fragment, or a URI with a scheme of the application's own such as com.example.app:/back")
	}
	if problems != nil {
		return rest.BadRequest("Validation failed: "+strings.Join(problems, "; "), problems...)
	}
	return nil
}

// isRedirect tells whether a text is a URI that applications are called back by.
// Schemes of their own have a dot (RFC 8252, 7.1); those that browsers run do not.
func isRedirect(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !rest.Printable(text) || strings.Contains(text, "#") || u.User != nil {
		return false
	}
	if u.Scheme == "https" || u.Scheme == "http" {
		return u.Hostname() != ""
	}
	return strings.Contains(u.Scheme, ".")
}
