package definition

import (
	"regexp"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// The places where a request names the version that it wants.
const (
	VersionInHeader = "header"
	VersionInParam  = "url-param"
	VersionInPath   = "url"
)

// VersionNames returns the names of the versions that requests choose between,
// in order; none when the API is not versioned.
func (a *API) VersionNames() []string {
	if !a.Versioned() {
		return nil
	}
	return object.SortedKeys(a.VersionData.Versions)
}

// OtherVersions returns the versions of the API that are other APIs, nil when there
// are none.
func (a *API) OtherVersions() *VersionAPIs {
	s := a.Selector
	if s == nil || !s.Enabled || len(s.Versions) == 0 {
		return nil
	}
	return &VersionAPIs{Name: s.Name, Default: s.Default, Others: s.Versions}
}

// Ambiguous reports whether the API is not versioned and yet has several versions,
// none of which is called "Default".
func (a *API) Ambiguous() bool {
	d := a.VersionData
	return d != nil && d.NotVersioned && len(d.Versions) > 1 && d.Versions["Default"] == nil
}

// expiryForm is how the end of a version is written, in UTC.
const expiryForm = "2006-01-02 15:04"

// Expiry returns when the version ends, and whether it ever does. One whose end
// cannot be read has ended: at is zero then.
func (v *Version) Expiry() (at time.Time, ends bool) {
	if v == nil || v.Expires == "" || v.Expires == "-1" {
		return time.Time{}, false
	}
	at, err := time.Parse(expiryForm, v.Expires)
	if err != nil {
		at = time.Time{}
	}
	return at, true
}

// Warnings lists what is served, but probably not as intended. A definition with
// warnings is used.
func (a *API) Warnings() []Problem {
	var p Problems
	p.warnOfRates(a)
	if a.VersionData == nil {
		return p
	}
	for _, name := range object.SortedKeys(a.VersionData.Versions) {
		v := a.VersionData.Versions[name]
		if at, ends := v.Expiry(); ends && at.IsZero() {
			p.addf(object.Entry("version_data.versions", name)+".expires",
				`is not a time such as "2030-12-31 23:59" (UTC), so that the version counts as expired; "-1" is never`)
		}
		p.join(object.Entry("version_data.versions", name), asProblems(v.PathRules().warnings(a.Proxy.ListenPath)...))
	}
	return p
}

// checkVersion checks what a version says about paths, sizes and its target.
func (p *Problems) checkVersion(at string, v *Version) {
	if v.GlobalSizeLimit < 0 {
		p.addf(at+".global_size_limit", "must not be negative; 0 is no limit")
	}
	if v.OverrideTarget != "" {
		p.checkWith(at+".override_target", checkTarget(v.OverrideTarget))
	}
	for _, f := range v.Unknown.LenientFaults("extended_paths", new(ExtendedPaths)) {
		if v.UseExtendedPaths || f.Path == "" { // only an object can be put into use
			p.join(at+".extended_paths", asProblems(f))
		}
	}
	var paths pathReader
	paths.read(v)
	p.join(at, asProblems(paths.faults...))
}

// checkSelector checks how requests choose their version.
func (p *Problems) checkSelector(a *API) {
	others := a.OtherVersions()
	if others != nil {
		p.join("definition", asProblems(others.check()...))
		if a.Versioned() {
			p.addf("definition.versions", "names other APIs as versions, and version_data.versions has some of this API's own; set version_data.not_versioned, or keep one of the two")
		}
	}
	if !a.Versioned() && others == nil {
		return
	}
	if d := a.VersionData; a.Versioned() && d.DefaultVersion != "" && d.Versions[d.DefaultVersion] == nil {
		p.addf("version_data.default_version", "must be the name of a version: one of %s", strings.Join(a.VersionNames(), ", "))
	}
	s := a.Selector
	if s == nil {
		return // no request chooses
	}
	switch s.Location {
	case "", VersionInPath:
	case VersionInHeader:
		if !isToken(s.Key) {
			p.addf("definition.key", "must be the name of the header that names the version, such as X-Api-Version")
		}
	case VersionInParam:
		p.checkText("definition.key", s.Key)
		if s.Key == "" {
			p.addf("definition.key", "must be the name of the query parameter that names the version, such as version")
		}
	default:
		p.addf("definition.location", "must be %q, %q or %q", VersionInHeader, VersionInParam, VersionInPath)
	}
	if _, err := regexp.Compile(s.URLPattern); err != nil {
		p.addf("definition.url_versioning_pattern", "%s", expressionMessage(err))
	}
}
