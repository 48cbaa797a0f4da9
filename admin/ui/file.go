package ui

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"path"
	"regexp"

	"github.com/valyala/fasthttp"
)

// A file is answered as it is: compressed, as the zip holds it, or plain.
type file struct {
	gzip      []byte // nil: it is stored without compression
	plain     []byte // nil: made from gzip when a caller takes no compression
	kind      string // media type
	etag      string // "" for files whose names have a hash
	immutable bool
}

// hashed matches names that change with the content: index-B_41w2gI.js.
var hashed = regexp.MustCompile(`-[\w-]{8}\.\w+$`)

// packedFile turns an entry of a zip into a file: its deflate stream becomes a gzip
// stream by a header, and a checksum and length after it. Nothing is compressed again.
func packedFile(entry *zip.File) (*file, error) {
	raw, err := entry.OpenRaw()
	if err != nil {
		return nil, err
	}
	stream, err := io.ReadAll(raw)
	if err != nil {
		return nil, err
	}
	f := &file{etag: fmt.Sprintf(`"%08x-%x"`, entry.CRC32, entry.UncompressedSize64)}
	if entry.Method != zip.Deflate {
		f.plain = stream
		return f, nil
	}
	f.gzip = append(f.gzip, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255) // RFC 1952, section 2.3
	f.gzip = append(f.gzip, stream...)
	f.gzip = binary.LittleEndian.AppendUint32(f.gzip, entry.CRC32)
	f.gzip = binary.LittleEndian.AppendUint32(f.gzip, uint32(entry.UncompressedSize64))
	return f, nil
}

// readEntry returns the content of an entry.
func readEntry(entry *zip.File) ([]byte, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// write answers with the file, or with 304 if the caller has it.
func (f *file) write(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if f.immutable {
		h.Set(fasthttp.HeaderCacheControl, "public, max-age=31536000, immutable")
	} else {
		h.Set(fasthttp.HeaderCacheControl, "no-cache")
		h.Set(fasthttp.HeaderETag, f.etag)
		if given := ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch); bytes.Contains(given, []byte(f.etag)) {
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
	}
	ctx.SetContentType(f.kind)
	if f.gzip != nil && ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set(fasthttp.HeaderContentEncoding, "gzip")
		ctx.SetBody(f.gzip)
		return
	}
	plain, err := f.content()
	if err != nil { // the stream was read when the program was built
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetBody(plain)
}

// content returns the file without compression.
func (f *file) content() ([]byte, error) {
	if f.plain != nil {
		return f.plain, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(f.gzip))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// mediaType returns the media type of a file by its name.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".md", ".txt":
		return "text/plain; charset=utf-8"
	case ".json":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	}
	return "application/octet-stream"
}
