package definition

// VersionSelector says how a request chooses a version of the API.
type VersionSelector struct {
	// Whether versions lists other APIs as versions of this one.
	Enabled bool `json:"enabled,omitempty"`
	// Name of this API among its versions.
	Name string `json:"name,omitempty"`
	// Version of requests that name none.
	Default string `json:"default,omitempty"`
	// Where requests name their version: header, url-param (a query parameter) or url (the first segment of the path).
	Location string `json:"location,omitempty"`
	// Name of the header or query parameter.
	Key string `json:"key,omitempty"`
	// Whether the version is removed from the path.
	StripPath bool `json:"strip_path,omitempty"`
	// Whether the version is removed from header, query or path.
	StripVersioningData bool `json:"strip_versioning_data,omitempty"`
	// Regular expression of path segments that are versions.
	URLPattern string `json:"url_versioning_pattern,omitempty"`
	// Whether requests for an unknown version get the default version.
	FallbackToDefault bool `json:"fallback_to_default,omitempty"`
	// Ids or names of other APIs, by version; at most 1000.
	Versions map[string]string `json:"versions,omitempty"`
	Unknown  Unknown           `json:"-"`
}

// VersionData lists an API's versions. A definition without it is not versioned.
type VersionData struct {
	// Whether requests do not choose: the version Default, or the only one, is for all of them.
	NotVersioned bool `json:"not_versioned,omitempty"`
	// Version of requests that name none.
	DefaultVersion string `json:"default_version,omitempty"`
	// The versions by name, at most 1000.
	Versions map[string]*Version `json:"versions,omitempty"`
	Unknown  Unknown             `json:"-"`
}

// Version is one version of an API.
type Version struct {
	// Name of the version.
	Name string `json:"name,omitempty"`
	// End of the version in UTC, "YYYY-MM-DD HH:MM". Default, and "-1": never.
	Expires string `json:"expires,omitempty"`
	// Lists of paths, used without use_extended_paths.
	Paths *PathLists `json:"paths,omitempty"`
	// Whether extended_paths is used.
	UseExtendedPaths bool `json:"use_extended_paths,omitempty"`
	// Rules for single paths.
	ExtendedPaths *ExtendedPaths `json:"extended_paths,omitempty" object:"lenient"`
	// Request headers that are set, at most 1000; values may hold $svc_context and $svc_meta variables.
	GlobalHeaders map[string]string `json:"global_headers,omitempty"`
	// Request headers that are removed, at most 1000.
	GlobalHeadersRemove []string `json:"global_headers_remove,omitempty"`
	// Whether global_headers and global_headers_remove are off.
	GlobalHeadersDisabled bool `json:"global_headers_disabled,omitempty"`
	// Response headers that are set, at most 1000.
	GlobalResponseHeaders map[string]string `json:"global_response_headers,omitempty"`
	// Response headers that are removed, at most 1000.
	GlobalResponseHeadersRemove []string `json:"global_response_headers_remove,omitempty"`
	// Whether global_response_headers and global_response_headers_remove are off.
	GlobalResponseHeadersDisabled bool `json:"global_response_headers_disabled,omitempty"`
	// Whether letters of paths match in either case.
	IgnoreEndpointCase bool `json:"ignore_endpoint_case,omitempty"`
	// Largest request body in bytes; 0 is no limit.
	GlobalSizeLimit int64 `json:"global_size_limit,omitempty"`
	// URL in place of proxy.target_url.
	OverrideTarget string  `json:"override_target,omitempty"`
	Unknown        Unknown `json:"-"`
}

// PathLists are patterns of paths, for every method; each list has at most 10,000.
type PathLists struct {
	// Paths that need no key and have no limits.
	Ignored []string `json:"ignored,omitempty"`
	// Paths that alone are served, if there is one.
	White []string `json:"white_list,omitempty"`
	// Paths that are refused.
	Black   []string `json:"black_list,omitempty"`
	Unknown Unknown  `json:"-"`
}

// Versioned reports whether requests choose between versions.
func (a *API) Versioned() bool {
	return a.VersionData != nil && !a.VersionData.NotVersioned && len(a.VersionData.Versions) > 0
}
