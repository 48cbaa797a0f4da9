package app

import (
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/internal/definition/reference"
)

// Reference returns the kinds of objects that people write: API definitions, policies, keys,
// and the objects of the portal.
func Reference() ([]reference.Kind, error) {
	kinds, err := reference.Kinds()
	if err != nil {
		return nil, err
	}
	objects, err := portal.Reference()
	return append(kinds, objects), err
}
