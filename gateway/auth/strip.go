package auth

import "github.com/sluicegate/sluice/internal/definition"

// stripped returns the canonical names of the headers that a definition wants to
// keep from the upstream, because credentials come in them.
func stripped(def *definition.API) []string {
	if !def.StripAuthData {
		return nil
	}
	return []string{headerOf(def.Token())}
}
