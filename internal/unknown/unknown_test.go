package unknown_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/unknown"
)

// Some members of definitions stand in structs of their own that are not seen in
// the JSON: they are known whether they are there or not.
func TestMembersThatAreWrittenInlineAreKnown(t *testing.T) {
	text := []byte(`{"api_id":"a","jwt_source":"s","jwt_sauce":"s","proxy":{"listen_path":"/a/","target_url":"http://a","target_list":["http://b"],"ejection":null,"helth_check":{}}}`)
	var api definition.API
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	if api.Proxy.Extra == nil || api.Proxy.Extra.TargetList == nil || api.JWT == nil {
		t.Fatalf("%+v", api.Proxy)
	}
	found := unknown.Members(&api, text, "")
	if len(found) != 2 || found[0].Path != "jwt_sauce" || found[1].Path != "proxy.helth_check" {
		t.Errorf("%+v", found)
	}
}
