package answer

// Bodies of two subgraphs, whose entities an operation joins, and the response to it.
const (
	Products = `{"data":{"top":[` +
		`{"__typename":"Product","upc":"1","name":"Table"},{"__typename":"Product","upc":"2","name":"Couch"},` +
		`{"__typename":"Product","upc":"3","name":"Chair"},{"__typename":"Product","upc":"4","name":"Lamp"},` +
		`{"__typename":"Product","upc":"5","name":"Shelf"}]}}`
	Reviews = `{"data":{"_entities":[` +
		`{"__typename":"Product","upc":"1","stars":5},{"__typename":"Product","upc":"2","stars":3},{"__typename":"Product","upc":"3","stars":4},` +
		`{"__typename":"Product","upc":"4","stars":1},{"__typename":"Product","upc":"5","stars":2}]}}`
	Joined = `{"data":{"top":[` +
		`{"upc":"1","name":"Table","stars":5},{"upc":"2","name":"Couch","stars":3},{"upc":"3","name":"Chair","stars":4},` +
		`{"upc":"4","name":"Lamp","stars":1},{"upc":"5","name":"Shelf","stars":2}]}}`
)
