package didyoumean_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/didyoumean"
)

// Some members of definitions are in inlined structs. They are known whether the struct
// is present or not.
func TestMembersThatAreWrittenInlineAreKnown(t *testing.T) {
	text := []byte(`{"api_id":"a","jwt_source":"s","jwt_sauce":"s","proxy":{"listen_path":"/a/","target_url":"http://a","target_list":["http://b"],"ejection":null,"helth_check":{}}}`)
	var api definition.API
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	if api.Proxy.TargetList == nil || api.JWT == nil {
		t.Fatalf("%+v", api.Proxy)
	}
	found := didyoumean.UnknownMembers(&api, text, "")
	if len(found) != 2 || found[0].Path != "jwt_sauce" || found[1].Path != "proxy.helth_check" {
		t.Errorf("%+v", found)
	}
}
