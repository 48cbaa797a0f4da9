package definition

import "encoding/json"

// Unknown holds the members of a JSON object that this release does not know,
// as they were written.
type Unknown map[string]json.RawMessage
