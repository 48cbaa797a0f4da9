package definition

// VersionSelector says how a request chooses a version of the API.
type VersionSelector struct {
	// Whether versions lists other APIs as versions of this one.
	Enabled bool `json:"enabled,omitempty"`
	// Name of this API among its versions.
	// Example: "v1"
	Name string `json:"name,omitempty"`
	// Version of requests that name none.
	// Example: "v2"
	Default string `json:"default,omitempty"`
	// Where requests name their version: header, url-param (a query parameter) or url (the first segment of the path).
	// Example: "header"
	Location string `json:"location,omitempty" oneof:"header url-param url"`
	// Name of the header or query parameter.
	// Example: "X-Api-Version"
	Key string `json:"key,omitempty"`
	// Whether the version is removed from the path.
	StripPath bool `json:"strip_path,omitempty"`
	// Whether the version is removed from header, query or path.
	StripVersioningData bool `json:"strip_versioning_data,omitempty"`
	// Regular expression of path segments that are versions.
	// Example: "^v\\d+$"
	URLPattern string `json:"url_versioning_pattern,omitempty"`
	// Whether requests for an unknown version get the default version.
	FallbackToDefault bool `json:"fallback_to_default,omitempty"`
	// Ids or names of other APIs, by version; at most 1000.
	// Example: {"v2": "orders-v2"}
	Versions map[string]string `json:"versions,omitempty"`
	Unknown  Unknown           `json:"-"`
}

// VersionData lists an API's versions. A definition without it is not versioned.
type VersionData struct {
	// Whether requests do not choose: the version Default, or the only one, is for all of them.
	NotVersioned bool `json:"not_versioned,omitempty"`
	// Version of requests that name none.
	// Example: "v1"
	DefaultVersion string `json:"default_version,omitempty"`
	// The versions by name, at most 1000.
	// Example: {"v1": {"name": "v1"}, "v2": {"name": "v2", "override_target": "http://orders-v2.internal:8080"}}
	Versions map[string]*Version `json:"versions,omitempty"`
	Unknown  Unknown             `json:"-"`
}

// Version is one version of an API.
type Version struct {
	// Name of the version.
	// Example: "v1"
	Name string `json:"name,omitempty"`
	// End of the version in UTC, "YYYY-MM-DD HH:MM". Default, and "-1": never.
	// Example: "2030-12-31 23:59"
	Expires string `json:"expires,omitempty"`
	// Lists of paths, used without use_extended_paths.
	// Example: {"ignored": ["/health"]}
	Paths *PathLists `json:"paths,omitempty"`
	// Whether extended_paths is used.
	UseExtendedPaths bool `json:"use_extended_paths,omitempty"`
	// Rules for single paths.
	// Example: {"ignored": [{"path": "/health", "method": "GET"}]}
	ExtendedPaths *ExtendedPaths `json:"extended_paths,omitempty" object:"lenient"`
	// Request headers that are set, at most 1000; values may hold $svc_context and $svc_meta variables.
	// Example: {"X-Tenant": "$svc_meta.tenant"}
	GlobalHeaders map[string]string `json:"global_headers,omitempty"`
	// Request headers that are removed, at most 1000.
	// Example: ["X-Debug"]
	GlobalHeadersRemove []string `json:"global_headers_remove,omitempty"`
	// Whether global_headers and global_headers_remove are off.
	GlobalHeadersDisabled bool `json:"global_headers_disabled,omitempty"`
	// Response headers that are set, at most 1000.
	// Example: {"X-Served-By": "sluice"}
	GlobalResponseHeaders map[string]string `json:"global_response_headers,omitempty"`
	// Response headers that are removed, at most 1000.
	// Example: ["Server"]
	GlobalResponseHeadersRemove []string `json:"global_response_headers_remove,omitempty"`
	// Whether global_response_headers and global_response_headers_remove are off.
	GlobalResponseHeadersDisabled bool `json:"global_response_headers_disabled,omitempty"`
	// Whether letters of paths match in either case.
	IgnoreEndpointCase bool `json:"ignore_endpoint_case,omitempty"`
	// Largest request body in bytes; 0 is no limit.
	// Example: 1048576
	GlobalSizeLimit int64 `json:"global_size_limit,omitempty"`
	// URL in place of proxy.target_url.
	// Example: "http://orders-v2.internal:8080"
	OverrideTarget string  `json:"override_target,omitempty"`
	Unknown        Unknown `json:"-"`
}

// PathLists are patterns of paths, for every method; each list has at most 10,000.
type PathLists struct {
	// Paths that need no key and have no limits.
	// Example: ["/health"]
	Ignored []string `json:"ignored,omitempty"`
	// Paths that alone are served, if there is one.
	// Example: ["/orders/{id}"]
	White []string `json:"white_list,omitempty"`
	// Paths that are refused.
	// Example: ["/internal/*"]
	Black   []string `json:"black_list,omitempty"`
	Unknown Unknown  `json:"-"`
}

// Versioned reports whether requests choose between versions.
func (a *API) Versioned() bool {
	return a.VersionData != nil && !a.VersionData.NotVersioned && len(a.VersionData.Versions) > 0
}
