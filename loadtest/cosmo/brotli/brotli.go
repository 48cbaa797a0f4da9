// Package brotli stands in for the compression between Cosmo's router and its
// control plane, which no load test has and not every module proxy serves.
package brotli

import "connectrpc.com/connect"

// Name is what the compression is called.
const Name = "br"

// WithCompression has no effect.
func WithCompression() connect.Option { return connect.WithOptions() }
