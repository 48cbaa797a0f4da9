package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Select returns the index of the operation to execute: the one with the name or,
// if the name is "", the only one.
func Select(doc *syntax.Document, operationName string) (int, *syntax.Error) {
	switch {
	case len(doc.Operations) == 0:
		return -1, &syntax.Error{Message: "Must provide an operation."}
	case operationName == "" && len(doc.Operations) > 1:
		return -1, &syntax.Error{Message: "Must provide operation name if query contains multiple operations."}
	case operationName == "":
		return 0, nil
	}
	for i := range doc.Operations {
		if string(doc.Bytes(doc.Operations[i].Name)) == operationName {
			return i, nil
		}
	}
	return -1, &syntax.Error{Message: `Unknown operation named "` + clip(operationName, maxEcho) + `".`}
}
