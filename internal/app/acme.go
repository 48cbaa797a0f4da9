package app

import (
	"fmt"
	"path/filepath"

	"github.com/sluicegate/sluice/gateway/acme"
	"github.com/sluicegate/sluice/gateway/certs"
	shown "github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/secret"
)

// newACME returns the manager of certificates from ACME. Gateways of an admin share them in its
// database, each with a copy on disk; a gateway without an admin keeps them on disk only.
func newACME(p *nodeParts, issued *certs.Store) (*acme.Manager, error) {
	conf := p.cfg.Gateway.ACME
	caller, err := shown.NewCaller(shown.CallerOptions{CA: conf.CA, Log: p.log})
	if err != nil {
		return nil, fmt.Errorf("gateway.acme.ca: %w", err)
	}
	o := acme.Options{
		Domains: conf.Domains, Email: conf.Email, Directory: conf.Directory, Challenges: conf.Challenges,
		Transport: caller.Transport(), Issued: issued, Log: p.log,
	}
	dir := filepath.Join(p.cfg.DataDir, "acme")
	if p.adminURL == "" {
		key, _, err := secret.KeepKey(dir + ".key")
		if err != nil {
			return nil, fmt.Errorf("gateway.acme: %w", err)
		}
		o.Vault = acme.NewFolder(dir, key)
		return acme.New(o), nil
	}
	key, err := secret.DeriveKeyAfter(p.token, p.cfg.Gateway.FormerToken, "acme")
	if err != nil {
		return nil, fmt.Errorf("gateway.acme: %w", err)
	}
	o.Vault, o.Copy = acme.NewRemote(p.adminURL, p.token, p.admin), acme.NewFolder(dir, key)
	return acme.New(o), nil
}
