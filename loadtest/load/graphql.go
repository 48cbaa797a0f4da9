package load

import "strconv"

// Operation is the GraphQL operation that the load tests ask for, and answer is
// what the origin says to it, whatever it was asked: its compact JSON is what any
// server in between has to send on.
const (
	operation = `query Countries($continent: ID!) { countries(continent: $continent, first: 5) { code name capital population languages { code name } continent { code name } } }`
	answer    = `{"data":{"countries":[` +
		`{"code":"AT","name":"Austria","capital":"Vienna","population":9200000,"languages":[{"code":"de","name":"German"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"BE","name":"Belgium","capital":"Brussels","population":11700000,"languages":[{"code":"nl","name":"Dutch"},{"code":"fr","name":"French"},{"code":"de","name":"German"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"CH","name":"Switzerland","capital":"Bern","population":8800000,"languages":[{"code":"de","name":"German"},{"code":"fr","name":"French"},{"code":"it","name":"Italian"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"DK","name":"Denmark","capital":"Copenhagen","population":5900000,"languages":[{"code":"da","name":"Danish"}],"continent":{"code":"EU","name":"Europe"}},` +
		`{"code":"EE","name":"Estonia","capital":"Tallinn","population":1300000,"languages":[{"code":"et","name":"Estonian"}],"continent":{"code":"EU","name":"Europe"}}]}}`

	variables = `,"variables":{"continent":"EU"}}`
)

// AppendOperation appends the request body for the operation. With unseen it is
// another operation for every n.
func AppendOperation(dst []byte, n uint64, unseen bool) []byte {
	dst = append(dst, `{"query":"`...)
	if unseen {
		const name = len("query Countries")
		dst = append(dst, operation[:name]...)
		dst = strconv.AppendUint(dst, n+1e9, 10) // of one length
		dst = append(dst, operation[name:]...)
	} else {
		dst = append(dst, operation...)
	}
	return append(append(dst, '"'), variables...)
}
