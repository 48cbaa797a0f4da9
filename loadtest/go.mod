module github.com/sluicegate/sluice/loadtest

go 1.26.4

require (
	github.com/sluicegate/sluice v0.0.0
	github.com/valyala/fasthttp v1.74.0
)

require (
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/molecule-man/go-brrr v1.0.1 // indirect
	github.com/valkey-io/valkey-go v1.0.79 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/sluicegate/sluice => ..
