package definition

import "encoding/json"

// VersionSelector says where a request names the version it wants.
type VersionSelector struct {
	Enabled             bool              `json:"enabled,omitempty"`
	Name                string            `json:"name,omitempty"`
	Default             string            `json:"default,omitempty"`
	Location            string            `json:"location,omitempty"` // header, url-param or url
	Key                 string            `json:"key,omitempty"`
	StripPath           bool              `json:"strip_path,omitempty"`
	StripVersioningData bool              `json:"strip_versioning_data,omitempty"`
	URLPattern          string            `json:"url_versioning_pattern,omitempty"`
	FallbackToDefault   bool              `json:"fallback_to_default,omitempty"`
	Versions            map[string]string `json:"versions,omitempty"`
	Unknown             Unknown           `json:"-"`
}

// VersionData lists an API's versions. A definition without versions is not
// versioned.
type VersionData struct {
	NotVersioned   bool                `json:"not_versioned,omitempty"`
	DefaultVersion string              `json:"default_version,omitempty"`
	Versions       map[string]*Version `json:"versions,omitempty"`
	Unknown        Unknown             `json:"-"`
}

// Version is one version of an API.
type Version struct {
	Name                          string            `json:"name,omitempty"`
	Expires                       string            `json:"expires,omitempty"` // "YYYY-MM-DD HH:MM" in UTC; "" and "-1" are never
	Paths                         *PathLists        `json:"paths,omitempty"`
	UseExtendedPaths              bool              `json:"use_extended_paths,omitempty"`
	ExtendedPaths                 json.RawMessage   `json:"extended_paths,omitempty"`
	GlobalHeaders                 map[string]string `json:"global_headers,omitempty"`
	GlobalHeadersRemove           []string          `json:"global_headers_remove,omitempty"`
	GlobalHeadersDisabled         bool              `json:"global_headers_disabled,omitempty"`
	GlobalResponseHeaders         map[string]string `json:"global_response_headers,omitempty"`
	GlobalResponseHeadersRemove   []string          `json:"global_response_headers_remove,omitempty"`
	GlobalResponseHeadersDisabled bool              `json:"global_response_headers_disabled,omitempty"`
	IgnoreEndpointCase            bool              `json:"ignore_endpoint_case,omitempty"`
	GlobalSizeLimit               int64             `json:"global_size_limit,omitempty"` // bytes; 0 is no limit
	OverrideTarget                string            `json:"override_target,omitempty"`
	Unknown                       Unknown           `json:"-"`
}

// PathLists names paths that skip governance, are the only ones, or are
// refused.
type PathLists struct {
	Ignored []string `json:"ignored,omitempty"`
	White   []string `json:"white_list,omitempty"`
	Black   []string `json:"black_list,omitempty"`
	Unknown Unknown  `json:"-"`
}

// Versioned tells whether requests choose between versions.
func (a *API) Versioned() bool {
	return a.VersionData != nil && !a.VersionData.NotVersioned && len(a.VersionData.Versions) > 0
}
