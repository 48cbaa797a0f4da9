// Package definition is the contract between people, the admin and the
// gateways: API definitions, versions, policies, sessions and the bundle that
// carries them. Member names are those of the wire. Members that this release
// does not know are kept and written back unchanged.
package definition
