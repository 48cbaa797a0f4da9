package credentials

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
)

// maxAbout bounds each text about a client, in bytes.
const maxAbout = 2000

// clientPaths are the paths of the members that describe a client.
type clientPaths struct{ Redirect, App, Use string }

// requestPaths are the paths in key requests.
var requestPaths = clientPaths{"oauth_info.redirect_uri", "fields.oauth_app_description", "fields.oauth_use_case"}

// clientGrantOf returns the client that a request asks for.
func clientGrantOf(r *model.KeyRequest) ClientGrant {
	return ClientGrant{
		Redirect: r.OAuthInfo.RedirectURI, App: fieldText(r, "oauth_app_description"), Use: fieldText(r, "oauth_use_case"),
	}
}

// checkClient refuses texts that cannot be stored, and URIs that would run code in a
// browser.
func checkClient(c *ClientGrant, at clientPaths) error {
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

// isRedirect reports whether a text is a valid redirect URI. Private schemes have a dot
// (RFC 8252, section 7.1); schemes that browsers run do not.
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
