package brand

import (
	"encoding/hex"
	"fmt"
	"math"
)

// A colour is one of sRGB.
type colour [3]uint8

// parseColour reads a colour such as #0a5bd0.
func parseColour(text string) (c colour, ok bool) {
	if len(text) != 7 || text[0] != '#' {
		return c, false
	}
	_, err := hex.Decode(c[:], []byte(text[1:]))
	return c, err == nil
}

// String returns the colour as style sheets have it.
func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// mix returns the colour with a share of another.
func (c colour) mix(other colour, share float64) (m colour) {
	for i := range c {
		m[i] = uint8(math.Round(float64(c[i])*(1-share) + float64(other[i])*share))
	}
	return m
}

// luminance returns the relative luminance by WCAG 2.2.
func (c colour) luminance() float64 {
	part := func(n uint8) float64 {
		v := float64(n) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c[0]) + 0.7152*part(c[1]) + 0.0722*part(c[2])
}

// contrast returns the contrast ratio of two colours by WCAG 2.2, in 1…21.
func contrast(a, b colour) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// readable is the least contrast of text.
const readable = 4.5

// A theme is what an accent stands on, in light or in dark.
type theme struct {
	name     string
	surfaces []colour // that text in the accent stands on, and of text that stands on the accent
	towards  colour   // what makes an accent more readable
}

var (
	white = colour{0xff, 0xff, 0xff}
	black = colour{}

	light = theme{"light", []colour{white, {0xf5, 0xf6, 0xf8}, {0xec, 0xef, 0xf3}, {0xe4, 0xee, 0xfc}}, black}
	dark  = theme{"dark", []colour{{0x10, 0x13, 0x18}, {0x0a, 0x0c, 0x10}, {0x18, 0x1c, 0x23}, {0x22, 0x28, 0x32}, {0x16, 0x29, 0x4a}, {0x08, 0x15, 0x2b}}, white}
)

// least returns the lowest contrast of an accent with the surfaces.
func (t *theme) least(c colour) float64 {
	least := 21.0
	for _, s := range t.surfaces {
		least = min(least, contrast(c, s))
	}
	return least
}

// nearest returns the accent that can be read and is nearest to a colour: itself, or the
// first of those towards black or white.
func (t *theme) nearest(c colour) colour {
	for share := 0.0; share < 1; share += 0.01 {
		if m := c.mix(t.towards, share); t.least(m) >= readable {
			return m
		}
	}
	return t.towards
}

// check returns the problem of an accent, "" if it can be read.
func (t *theme) check(text string) string {
	c, ok := parseColour(text)
	if !ok {
		return fmt.Sprintf("must be a colour such as #0a5bd0, not %.20q", text)
	}
	if least := t.least(c); least < readable {
		return fmt.Sprintf("%s has a contrast of %.1f with the %s surfaces, and 4.5 is needed; the nearest that has it is %s", c, least, t.name, t.nearest(c))
	}
	return ""
}
