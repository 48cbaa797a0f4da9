package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// Unknown holds what a JSON object said beyond the fields of its struct.
type Unknown = object.Unknown

// UnmarshalJSON reads the whole of API; an error is *Problems.
func (a *API) UnmarshalJSON(data []byte) error { return unmarshal(data, a) }

// MarshalJSON writes API, unknown members included.
func (a API) MarshalJSON() ([]byte, error) { return object.Marshal(&a) }

// UnmarshalJSON reads the whole of Auth; an error is *Problems.
func (a *Auth) UnmarshalJSON(data []byte) error { return unmarshal(data, a) }

// MarshalJSON writes Auth, unknown members included.
func (a Auth) MarshalJSON() ([]byte, error) { return object.Marshal(&a) }

// UnmarshalJSON reads the whole of Proxy; an error is *Problems.
func (v *Proxy) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Proxy, unknown members included.
func (v Proxy) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of Transport; an error is *Problems.
func (v *Transport) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Transport, unknown members included.
func (v Transport) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of RateLimit; an error is *Problems.
func (v *RateLimit) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes RateLimit, unknown members included.
func (v RateLimit) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of VersionSelector; an error is *Problems.
func (v *VersionSelector) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes VersionSelector, unknown members included.
func (v VersionSelector) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of VersionData; an error is *Problems.
func (v *VersionData) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes VersionData, unknown members included.
func (v VersionData) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of Version; an error is *Problems.
func (v *Version) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Version, unknown members included.
func (v Version) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of PathLists; an error is *Problems.
func (v *PathLists) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes PathLists, unknown members included.
func (v PathLists) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of Policy; an error is *Problems.
func (p *Policy) UnmarshalJSON(data []byte) error { return unmarshal(data, p) }

// MarshalJSON writes Policy, unknown members included.
func (p Policy) MarshalJSON() ([]byte, error) { return object.Marshal(&p) }

// UnmarshalJSON reads the whole of Partitions; an error is *Problems.
func (v *Partitions) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Partitions, unknown members included.
func (v Partitions) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of Access; an error is *Problems.
func (v *Access) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Access, unknown members included.
func (v Access) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of AccessLimit; an error is *Problems.
func (v *AccessLimit) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes AccessLimit, unknown members included.
func (v AccessLimit) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of AllowedURL; an error is *Problems.
func (v *AllowedURL) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes AllowedURL, unknown members included.
func (v AllowedURL) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of TypeFields; an error is *Problems.
func (v *TypeFields) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes TypeFields, unknown members included.
func (v TypeFields) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of FieldAccess; an error is *Problems.
func (v *FieldAccess) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes FieldAccess, unknown members included.
func (v FieldAccess) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of FieldLimits; an error is *Problems.
func (v *FieldLimits) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes FieldLimits, unknown members included.
func (v FieldLimits) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of Endpoint; an error is *Problems.
func (v *Endpoint) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Endpoint, unknown members included.
func (v Endpoint) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of EndpointMethod; an error is *Problems.
func (v *EndpointMethod) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes EndpointMethod, unknown members included.
func (v EndpointMethod) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of Session; an error is *Problems.
func (s *Session) UnmarshalJSON(data []byte) error { return unmarshal(data, s) }

// MarshalJSON writes Session, unknown members included.
func (s Session) MarshalJSON() ([]byte, error) { return object.Marshal(&s) }

// UnmarshalJSON reads the whole of Credential; an error is *Problems.
func (v *Credential) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes Credential, unknown members included.
func (v Credential) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQL; an error is *Problems.
func (v *GraphQL) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQL, unknown members included.
func (v GraphQL) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLProxy; an error is *Problems.
func (v *GraphQLProxy) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLProxy, unknown members included.
func (v GraphQLProxy) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLHeaderRewrite; an error is *Problems.
func (v *GraphQLHeaderRewrite) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLHeaderRewrite, unknown members included.
func (v GraphQLHeaderRewrite) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLProxyFeatures; an error is *Problems.
func (v *GraphQLProxyFeatures) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLProxyFeatures, unknown members included.
func (v GraphQLProxyFeatures) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLResponseExtensions; an error is *Problems.
func (v *GraphQLResponseExtensions) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLResponseExtensions, unknown members included.
func (v GraphQLResponseExtensions) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLIntrospection; an error is *Problems.
func (v *GraphQLIntrospection) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLIntrospection, unknown members included.
func (v GraphQLIntrospection) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLLimits; an error is *Problems.
func (v *GraphQLLimits) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLLimits, unknown members included.
func (v GraphQLLimits) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLCost; an error is *Problems.
func (v *GraphQLCost) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLCost, unknown members included.
func (v GraphQLCost) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLTrustedDocuments; an error is *Problems.
func (v *GraphQLTrustedDocuments) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLTrustedDocuments, unknown members included.
func (v GraphQLTrustedDocuments) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of GraphQLSchemaSync; an error is *Problems.
func (v *GraphQLSchemaSync) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes GraphQLSchemaSync, unknown members included.
func (v GraphQLSchemaSync) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }

// UnmarshalJSON reads the whole of PersistedOperation; an error is *Problems.
func (v *PersistedOperation) UnmarshalJSON(data []byte) error { return unmarshal(data, v) }

// MarshalJSON writes PersistedOperation, unknown members included.
func (v PersistedOperation) MarshalJSON() ([]byte, error) { return object.Marshal(&v) }
