package usage

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FieldReport lists which fields of an API were read by which keys.
type FieldReport struct {
	API   string    `json:"api_id"`
	Since time.Time `json:"since"` // when this gateway began to count

	// Fields are those that were read, ordered by type and name.
	Fields []FieldUse `json:"fields"`

	// Total is the number of fields on all pages.
	Total int `json:"total"`

	// Dropped is how many reads of fields were not counted for want of memory.
	Dropped uint64 `json:"dropped"`
}

// FieldUse counts the reads of a field. An operation counts once, however often it
// has the field.
type FieldUse struct {
	// Name of the type that has the field.
	Type string `json:"type"`
	// Name of the field.
	Name string `json:"field"`
	// Operations that read the field; an operation counts once, however often it has the field.
	Count uint64 `json:"count"`
	// Time of the last of those operations.
	LastUsed time.Time `json:"last_used"`

	// Keys that read the field most often, in descending order; at most 5.
	Keys []KeyUse `json:"keys" nullable:"false"`
	// Number of all keys that read the field.
	KeysTotal int `json:"keys_total"`

	// Reads by keys that there was no memory for; left out: none.
	Others *OtherUse `json:"others,omitempty"`
}

// KeyUse counts the reads of a field by one key.
type KeyUse struct {
	// Short form of the key's hash, as logs have it; empty without a key.
	Key string `json:"key"`
	// Operations of the key that read the field.
	Count uint64 `json:"count"`
	// Time of the last of those operations.
	LastUsed time.Time `json:"last_used"`
}

// OtherUse counts the reads of a field by keys that are not told apart.
type OtherUse struct {
	// Operations of those keys that read the field.
	Count uint64 `json:"count"`
	// Time of the last of those operations.
	LastUsed time.Time `json:"last_used"`
}

// OperationUse counts the runs of the operations of one kind and name.
type OperationUse struct {
	// Kind of the operations.
	Kind string `json:"kind" enum:"query,mutation,subscription"`
	// Name of the operations. Empty: those without a name; other: those beyond the 200 names that a
	// gateway counts, and refused ones whose name never ran.
	Name string `json:"name"`
	// Operations that were answered by the upstream without a failure.
	OK uint64 `json:"ok"`
	// Operations that failed at the upstream.
	Failed uint64 `json:"failed"`
	// Operations that the gateway refused.
	Refused uint64 `json:"refused"`
}

// Runs returns how often the operations were asked for.
func (u *OperationUse) Runs() uint64 { return u.OK + u.Failed + u.Refused }

// A GraphQLQuestion is one of the admin to gateways: how a GraphQL API was used.
type GraphQLQuestion struct {
	API    string
	Type   string // whose fields are reported; "": those of all
	Fields int    // most fields in the answer; 0: the operations are asked for
}

// Bounds of answers, which keep below what a gateway may answer.
const (
	MaxFields    = 2000 // of one answer
	MaxFieldKeys = 5    // of a field
)

const asksGraphQL = "graphql?"

// String returns the text of the question, which fits into a header line and has no commas.
func (q *GraphQLQuestion) String() string {
	v := url.Values{"api_id": {q.API}, "fields": {strconv.Itoa(q.Fields)}}
	if q.Type != "" {
		v.Set("type", q.Type)
	}
	return asksGraphQL + v.Encode()
}

// ParseGraphQLQuestion reads the text of a question. ok is false for other questions.
func ParseGraphQLQuestion(text string) (q GraphQLQuestion, ok bool) {
	text, ok = strings.CutPrefix(text, asksGraphQL)
	v, err := url.ParseQuery(text)
	if !ok || err != nil {
		return q, false
	}
	n, err := strconv.Atoi(v.Get("fields"))
	if err != nil || n < 0 || n > MaxFields {
		return q, false
	}
	return GraphQLQuestion{API: v.Get("api_id"), Type: v.Get("type"), Fields: n}, true
}

// A GraphQLAnswer is that of one gateway.
type GraphQLAnswer struct {
	Gateway    string         `json:"gateway"`
	Since      time.Time      `json:"since"` // zero: it has counted nothing
	Operations []OperationUse `json:"operations,omitempty"`
	Fields     *FieldReport   `json:"fields,omitempty"`
}

// CountedBy says what counts cover.
type CountedBy struct {
	// Time at which the first of the gateways began to count; null: none has counted anything.
	Since *time.Time `json:"since"`
	// Names of the gateways that answered.
	Gateways []string `json:"gateways" nullable:"false"`
	// Names of the gateways that did not answer in time: their counts are missing.
	Silent []string `json:"silent" nullable:"false"`
}

// From returns the name of the gateway.
func (a *GraphQLAnswer) From() string { return a.Gateway }

// MergeOperations adds up what gateways counted: those that ran most come first.
func MergeOperations(answers []GraphQLAnswer) []OperationUse {
	type id struct{ kind, name string }
	sums := make(map[id]*OperationUse)
	for i := range answers {
		for _, one := range answers[i].Operations {
			sum := sums[id{one.Kind, one.Name}]
			if sum == nil {
				sum = &OperationUse{Kind: one.Kind, Name: one.Name}
				sums[id{one.Kind, one.Name}] = sum
			}
			sum.OK, sum.Failed, sum.Refused = sum.OK+one.OK, sum.Failed+one.Failed, sum.Refused+one.Refused
		}
	}
	all := make([]OperationUse, 0, len(sums))
	for _, one := range sums {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b OperationUse) int {
		return cmp.Or(cmp.Compare(b.Runs(), a.Runs()), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	return all
}

// MergeFields adds up what gateways counted, ordered by type and name. Each answer has the
// keys that read a field most; how many there are in all is at least what the gateway with
// the most of them counted.
func MergeFields(answers []GraphQLAnswer) []FieldUse {
	type id struct{ owner, name string }
	sums := make(map[id]*FieldUse)
	for i := range answers {
		if answers[i].Fields == nil {
			continue
		}
		for _, one := range answers[i].Fields.Fields {
			at := id{one.Type, one.Name}
			if sum := sums[at]; sum != nil {
				sum.Add(&one)
				continue
			}
			sums[at] = &one
		}
	}
	all := make([]FieldUse, 0, len(sums))
	for _, one := range sums {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b FieldUse) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return all
}

// Add adds what was counted elsewhere. The keys of both may be the same.
func (u *FieldUse) Add(more *FieldUse) {
	u.Count += more.Count
	u.LastUsed = later(u.LastUsed, more.LastUsed)
	for _, key := range more.Keys {
		at := slices.IndexFunc(u.Keys, func(one KeyUse) bool { return one.Key == key.Key })
		if at < 0 {
			u.Keys = append(u.Keys, key)
			continue
		}
		u.Keys[at].Count += key.Count
		u.Keys[at].LastUsed = later(u.Keys[at].LastUsed, key.LastUsed)
	}
	u.KeysTotal = max(u.KeysTotal, more.KeysTotal, len(u.Keys))
	u.RankKeys(MaxFieldKeys)
	if more.Others != nil {
		if u.Others == nil {
			u.Others = new(OtherUse)
		}
		u.Others.Count += more.Others.Count
		u.Others.LastUsed = later(u.Others.LastUsed, more.Others.LastUsed)
	}
}

// RankKeys keeps the keys that read the field most.
func (u *FieldUse) RankKeys(most int) {
	slices.SortFunc(u.Keys, func(x, y KeyUse) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), strings.Compare(x.Key, y.Key))
	})
	u.Keys = slices.Clip(u.Keys[:min(max(most, 0), len(u.Keys))])
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
