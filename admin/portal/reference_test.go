package portal

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
)

// Every member of an object of the portal has a description of whole sentences, a default
// and an example, which has its type.
func TestEveryMemberIsDocumented(t *testing.T) {
	k, err := Reference()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range k.Members {
		if !strings.HasSuffix(m.Text, ".") || m.Default == "" {
			t.Errorf("%s: description %q, default %q", m.Path, m.Text, m.Default)
		}
		document := at(m.Path, string(m.Example))
		decoder := json.NewDecoder(strings.NewReader(document))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(new(objects)); err != nil {
			t.Errorf("%s: %v in %s", m.Path, err, document)
		}
	}
	t.Logf("%d members", len(k.Members))
}

// The description of the admin has these comments.
func TestMembersAreDescribedInOpenAPI(t *testing.T) {
	text, err := rest.Describe([]rest.Route{{Method: http.MethodGet, Path: "/a", Body: objects{}, Reply: objects{}}}, "test", source())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Client", "Configuration", "Developer", "Entry", "KeyRequest", "MailCopy", "Webhook"} {
		members := doc.Components.Schemas[name].Properties
		if len(members) == 0 {
			t.Errorf("there is no %s", name)
		}
		for member, said := range members {
			if said.Description == "" {
				t.Errorf("%s.%s has no description", name, member)
			}
		}
	}
}

// at is an object with a value at a path.
func at(path, value string) string {
	switch {
	case path == "":
		return value
	case strings.HasPrefix(path, "[]"):
		return "[" + at(path[2:], value) + "]"
	case strings.HasPrefix(path, "{}"):
		return `{"a":` + at(path[2:], value) + "}"
	}
	name := strings.TrimPrefix(path, ".")
	rest := ""
	if end := strings.IndexAny(name, ".[{"); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	return `{"` + name + `":` + at(rest, value) + "}"
}
