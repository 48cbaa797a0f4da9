package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
)

// describe writes the admin's OpenAPI document, from which the UI's types are generated.
// It needs no database: the document follows from the routes.
func describe(ctx context.Context, out io.Writer) error {
	db, err := store.Open(ctx, store.Options{URL: "postgres://nobody@127.0.0.1:1/none"})
	if err != nil {
		return err
	}
	defer db.Close()
	server, err := admin.New(admin.Deps{
		Store: db, Keys: keystore.NewMemory(), Counters: counter.NewMemory(time.Now), Version: "dev",
		KeyOptions: keys.Options{Hasher: &credential.Hasher{}},
	})
	if err != nil {
		return fmt.Errorf("making an admin: %w", err)
	}
	text, err := server.OpenAPI()
	if err != nil {
		return fmt.Errorf("describing the admin: %w", err)
	}
	if _, err := out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing the description: %w", err)
	}
	return server.Shutdown(ctx)
}
