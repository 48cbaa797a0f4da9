package schema_test

import (
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

func TestLookUpsFindWhatTheSchemaDefines(t *testing.T) {
	s, err := schema.Load(`
		interface Node { id: ID! }
		type Query { node(id: ID!, first: Int = 3): Node  user: User @deprecated }
		type User implements Node { id: ID! names: [[String!]]! }
		enum Colour { RED GREEN @deprecated }
		extend type User { colour: Colour }
	`)
	if err != nil {
		t.Fatal(err)
	}
	user, ok := s.TypeNamed([]byte("User"))
	if !ok || s.Types[user].Name != "User" {
		t.Fatalf("User is type %d", user)
	}
	names, ok := s.FieldNamed(user, []byte("names"))
	if got := s.RefString(s.Fields[names].Type); !ok || got != "[[String!]]!" {
		t.Errorf("User.names is %q", got)
	}
}
