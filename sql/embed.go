// Package sql holds the database migrations. The queries beside them are the
// source of package admin/store/db.
package sql

import "embed"

// Migrations holds the files migrations/NNNNN_name.sql, each with both
// directions, for goose.
//
//go:embed migrations/*.sql
var Migrations embed.FS
