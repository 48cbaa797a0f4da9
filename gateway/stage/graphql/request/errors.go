package request

import (
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// The refusals of incomplete and unsupported requests.
var (
	// Empty refuses a request without a body.
	Empty = pipeline.NewRejection(pipeline.ReasonGraphQLInvalid, 400, "the provided request is empty")

	// NotSupported refuses a document ID if no documents are stored. Clients of
	// automatic persisted queries expect its code and status.
	NotSupported = coded("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED", 200)

	// NotFound requests the text of a document that the client named by its hash.
	// Clients of automatic persisted queries expect its status.
	NotFound = coded("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND", 200)

	noQuery             = invalid("Must provide query string.")
	notObject           = invalid("The request body must be a JSON object with the member query.")
	lookalikeMember     = invalid("The request has a member whose name differs from query, operationName, variables or extensions in case only.")
	queryType           = invalid("query must be a string.")
	operationType       = invalid("operationName must be a string or null.")
	variablesType       = invalid("variables must be an object or null.")
	extensionsType      = invalid("extensions must be an object or null.")
	notUTF8             = invalid("The request body is not UTF-8.")
	halfPair            = invalid("The request has a string with half of a surrogate pair, which is no text.")
	persistedType       = invalid("extensions.persistedQuery must be an object with version 1 and sha256Hash, 64 hexadecimal digits.")
	documentType        = invalid("documentId must be a string.")
	documentBesideQuery = invalid("documentId cannot be given beside query.")
	idBesideQuery       = invalid("id and doc_id are names of stored documents; they cannot be given beside query.")
	batchOff            = invalid("Batched requests are not accepted; send each operation on its own.")
	batchEmpty          = invalid("A batch must have at least one operation.")

	urlEscape    = invalid("The URL has a parameter that is not percent-encoded UTF-8.")
	urlSeparator = invalid("The URL separates parameters by a semicolon; use an ampersand.")

	// BodyBesideURL refuses a GET request with a body.
	BodyBesideURL = invalid("A GET request must not have a body.")
)

// Invalid returns a refusal with one error without a location.
func Invalid(status int, message string) *pipeline.Rejection {
	return Refusal(pipeline.ReasonGraphQLInvalid, status, message)
}

func invalid(message string) *pipeline.Rejection { return Invalid(400, message) }

// Refusal returns a refusal with one error for any reason.
func Refusal(reason pipeline.Reason, status int, message string) *pipeline.Rejection {
	return pipeline.NewGraphQLRejection(reason, status, message, Body(&syntax.Error{Message: message}))
}

// coded returns a refusal whose error has a code in its extensions.
func coded(message, code string, status int) *pipeline.Rejection {
	body := `{"errors":[{"message":"` + message + `","extensions":{"code":"` + code + `"}}]}`
	return pipeline.NewGraphQLRejection(pipeline.ReasonGraphQLInvalid, status, message, []byte(body))
}

// Body returns a GraphQL response with errors only.
func Body(errs ...*syntax.Error) []byte {
	b := append(make([]byte, 0, 64+64*len(errs)), `{"errors":[`...)
	for i, e := range errs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendError(b, e)
	}
	return append(b, "]}"...)
}

func appendError(b []byte, e *syntax.Error) []byte {
	b = append(b, `{"message":`...)
	b = jsonscan.AppendString(b, []byte(e.Message))
	for i, at := range e.Locations {
		if i == 0 {
			b = append(b, `,"locations":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"line":`...)
		b = strconv.AppendInt(b, int64(at.Line), 10)
		b = append(b, `,"column":`...)
		b = strconv.AppendInt(b, int64(at.Column), 10)
		b = append(b, '}')
	}
	if len(e.Locations) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}
