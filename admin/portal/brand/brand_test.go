package brand

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

func TestAccentsHaveToBeReadable(t *testing.T) {
	for _, c := range []struct {
		theme *theme
		text  string
		says  string
	}{
		{&light, "#0a5bd0", ""},
		{&dark, "#79aefc", ""},
		{&light, "#79aefc", "the nearest that has it is #"},
		{&dark, "#0a5bd0", "the nearest that has it is #"},
		{&light, "#ffffff", "a contrast of 1.0"},
		{&light, "blue", "must be a colour such as"},
		{&light, "#12345", "must be a colour such as"},
		{&light, "#12345g", "must be a colour such as"},
		{&light, `red;}body{x:y`, "must be a colour such as"},
	} {
		why := c.theme.check(c.text)
		if (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
			t.Errorf("%s on %s: %q, want %q", c.text, c.theme.name, why, c.says)
		}
	}
	// What is proposed is accepted, and what can be read is its own nearest.
	for _, theme := range []*theme{&light, &dark} {
		for r := 0; r < 256; r += 51 {
			for g := 0; g < 256; g += 51 {
				for b := 0; b < 256; b += 51 {
					c := colour{uint8(r), uint8(g), uint8(b)}
					near := theme.nearest(c)
					if why := theme.check(near.String()); why != "" {
						t.Errorf("%s: proposed %s, which %s", c, near, why)
					}
					if theme.check(c.String()) == "" && near != c {
						t.Errorf("%s can be read, and its nearest is %s", c, near)
					}
				}
			}
		}
	}
	if got := contrast(white, black); got < 20.99 || got > 21.01 {
		t.Errorf("white on black: %f", got)
	}
}

func picture(side int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	m.Set(0, 0, color.RGBA{R: 200, A: 255})
	return m
}

// WebP pictures of one pixel.
const (
	lossy    = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
	lossless = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
)

func webP(t *testing.T, text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// canvas puts a frame of any size onto a canvas of one pixel.
func canvas(frame []byte) []byte {
	chunks := append([]byte("WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), frame...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(chunks))), chunks...)
}

func TestLogosAreWrittenAnew(t *testing.T) {
	encoded := func(side int, as func(*bytes.Buffer, image.Image) error) []byte {
		var b bytes.Buffer
		if err := as(&b, picture(side)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	asPNG := func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) }
	asJPEG := func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }
	for name, data := range map[string][]byte{"PNG": encoded(8, asPNG), "JPEG": encoded(8, asJPEG), "WebP": webP(t, lossy), "WebP without loss": webP(t, lossless), "PNG with a script behind": append(encoded(8, asPNG), "<script>alert(1)</script>"...)} {
		got, why := readLogo(base64.StdEncoding.EncodeToString(data))
		if why != "" || !bytes.HasPrefix(got, []byte("\x89PNG")) || bytes.Contains(got, []byte("script")) {
			t.Errorf("%s: %q %q", name, why, got)
		}
	}
	// A frame of 16384 by 16384 pixels takes a gigabyte.
	large := webP(t, lossless)
	copy(large[21:], "\xff\xff\xff\x0f")
	for name, c := range map[string]struct{ sent, says string }{
		"a large WebP":        {base64.StdEncoding.EncodeToString(large), "16384 by 16384 pixels"},
		"a WebP of two sizes": {base64.StdEncoding.EncodeToString(canvas(large[12:])), "cannot be read to its end"},
		"no base64":           {"%%", "in base64"},
		"a vector picture":    {base64.StdEncoding.EncodeToString([]byte("<svg xmlns='http://www.w3.org/2000/svg'/>")), "must be a PNG, a JPEG or a WebP picture"},
		"too wide":            {base64.StdEncoding.EncodeToString(encoded(maxSide+1, asPNG)), "at most 1024 a side"},
		"cut off":             {base64.StdEncoding.EncodeToString(encoded(64, asPNG)[:60]), "cannot be read to its end"},
		"too many bytes":      {base64.StdEncoding.EncodeToString(make([]byte, maxLogo+1)), "at most 204800"},
	} {
		if got, why := readLogo(c.sent); got != nil || !strings.Contains(why, c.says) {
			t.Errorf("%s: %q, want %q", name, why, c.says)
		}
	}
}

func TestLinksLeadSomewhereSafe(t *testing.T) {
	for to, fine := range map[string]bool{
		"https://example.com/a": true, "http://example.com": true, "mailto:a@example.com": true, "/terms": true,
		"": false, "javascript:alert(1)": false, "data:text/html,x": false, "//evil.example": false, `/\evil`: false, "https:evil": false, "terms": false, "https://a b": false,
	} {
		l := Link{Text: "Terms", URL: to}
		if why := l.Problem(); (why == "") != fine {
			t.Errorf("%q: %q", to, why)
		}
	}
}
