// Package tools checks what is deployed with the libraries of the tools that read it. It is a
// module of its own: the product does not depend on them.
package tools

import (
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// The library of docker compose reads the project, and finds its files.
func TestTheProjectOfComposeIsValid(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../compose/compose.yaml"}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "valkey", "admin", "gateway-1", "gateway-2", "nginx", "prometheus", "grafana"} {
		if _, err := project.GetService(name); err != nil {
			t.Error(err)
		}
	}
	if nginx, pool := project.Services["nginx"].Networks["default"], project.Networks["default"].Ipam.Config; nginx == nil || nginx.Ipv4Address != "172.30.0.2" || len(pool) != 1 || pool[0].IPRange != "172.30.0.128/25" {
		t.Errorf("nginx has no address of its own: %+v of %+v", nginx, pool)
	}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == "bind" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, secret := range service.Secrets {
			if _, there := project.Secrets[secret.Source]; !there {
				t.Errorf("%s: there is no secret %s", name, secret.Source)
			}
		}
	}
}
