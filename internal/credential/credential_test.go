package credential

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestGeneratedKeysHaveTheirShapeAndPassTheCheck(t *testing.T) {
	shape := regexp.MustCompile(`^slk_[0-9A-Za-z]{49}$`)
	seen := make(map[string]bool)
	for range 1000 {
		key := Generate(DefaultPrefix)
		if !shape.MatchString(key) || seen[key] || !Check(DefaultPrefix, []byte(key)) {
			t.Fatalf("key %q: shape %v, seen before %v, checks %v", key, shape.MatchString(key), seen[key], Check(DefaultPrefix, []byte(key)))
		}
		seen[key] = true
	}
	if key := Generate(""); len(key) != 49 {
		t.Errorf("without a prefix: %q", key)
	}
}

func TestBase62KeepsEveryBit(t *testing.T) {
	var zero, ones, last [secretBytes]byte
	last[secretBytes-1] = 62
	for i := range ones {
		ones[i] = 0xff
	}
	for _, c := range []struct {
		secret [secretBytes]byte
		want   string
	}{
		{zero, strings.Repeat("0", 43)},
		{last, strings.Repeat("0", 41) + "10"},
		{ones, base62OfOnes()},
	} {
		got := string(appendBase62(nil, c.secret))
		if got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// base62OfOnes is 2^256-1 in base 62, by schoolbook doubling.
func base62OfOnes() string {
	value := make([]int, secretChars)
	for range 256 {
		carry := 1
		for i := len(value) - 1; i >= 0; i-- {
			n := 2*value[i] + carry
			value[i], carry = n%62, n/62
		}
	}
	var b strings.Builder
	for _, v := range value {
		b.WriteByte(digits[v])
	}
	return b.String()
}

func TestCheckRefusesEveryMistypedKey(t *testing.T) {
	key := []byte(Generate(DefaultPrefix))
	for i := len(DefaultPrefix); i < len(key); i++ {
		for _, c := range []byte("0aZ-") {
			if key[i] == c {
				continue
			}
			mistyped := slices.Clone(key)
			mistyped[i] = c
			if Check(DefaultPrefix, mistyped) {
				t.Errorf("%s passes with byte %d changed to %c", key, i, c)
			}
		}
	}
	for _, token := range []string{DefaultPrefix, string(key[:len(key)-1]), string(key) + "0", DefaultPrefix + "custom"} {
		if Check(DefaultPrefix, []byte(token)) {
			t.Errorf("%q passes", token)
		}
	}
	for _, token := range []string{"", "slk", "custom", "orgslk_x"} {
		if !Check(DefaultPrefix, []byte(token)) {
			t.Errorf("%q, which has no prefix, does not pass", token)
		}
	}
	if !Check("", []byte("slk_x")) {
		t.Error("without a prefix something is refused")
	}
}

func TestHashes(t *testing.T) {
	form := func(h string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"org":"o","id":"i","h":"` + h + `"}`))
	}
	sum := func(a Algorithm, key string) string { return string(appendHash(nil, a, []byte(key))) }
	for _, c := range []struct {
		name, key, want string
		algorithm       Algorithm
	}{
		{"sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", SHA256},
		{"in clear", "abc", "abc", None},
		{"murmur32", "hello", "248bfa47", Murmur32},
		{"murmur64", "hello", "cbd8a7b341bd9b02", Murmur64},
		{"murmur128", "hello", "cbd8a7b341bd9b025b1e906a48ae1d19", Murmur128},
		{"base64 form that names a legacy hash", form("murmur128"), sum(SHA256, form("murmur128")), SHA256},
		{"base64 form without a name", form(""), sum(SHA256, form("")), SHA256},
		{"base64 form with an unknown name", form("md5"), sum(SHA256, form("md5")), SHA256},
		{"base64 form in clear", form("murmur64"), form("murmur64"), None},
		{"base64 of something else", "eyJhIjoiYiJ9", sum(SHA256, "eyJhIjoiYiJ9"), SHA256},
	} {
		h := Hasher{Algorithm: c.algorithm}
		if got := h.Hash(c.key); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestMurmurVectors(t *testing.T) {
	for _, c := range []struct {
		text   string
		h32    uint32
		h1, h2 uint64
	}{
		{"", 0, 0, 0},
		{"hello", 0x248bfa47, 0xcbd8a7b341bd9b02, 0x5b1e906a48ae1d19},
		{"hello, world", 0x149bbb7f, 0x342fac623a5ebc8e, 0x4cdcbc079642414d},
		{"19 Jan 2038 at 3:14:07 AM", 0xe31e8a70, 0xb89e5988b737affc, 0x664fc2950231b2cb},
		{"The quick brown fox jumps over the lazy dog.", 0xd5c48bfc, 0xcd99481f9ee902c9, 0x695da1a38987b6e7},
	} {
		if got := murmur32([]byte(c.text)); got != c.h32 {
			t.Errorf("murmur32(%q) = %#x, want %#x", c.text, got, c.h32)
		}
		if h1, h2 := murmur128([]byte(c.text)); h1 != c.h1 || h2 != c.h2 {
			t.Errorf("murmur128(%q) = %#x %#x, want %#x %#x", c.text, h1, h2, c.h1, c.h2)
		}
	}
}

func TestCandidates(t *testing.T) {
	key := Generate(DefaultPrefix)
	naming := func(h string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"org":"o","id":"me","h":"` + h + `"}`))
	}
	form := naming("murmur64")
	sum := func(a Algorithm, key string) string { return string(appendHash(nil, a, []byte(key))) }
	plain := Hasher{Prefix: DefaultPrefix}
	clear := Hasher{Algorithm: None, Prefix: DefaultPrefix}
	older := Hasher{Prefix: DefaultPrefix, Legacy: []Algorithm{Murmur32, Murmur64}}
	for _, c := range []struct {
		name       string
		h          Hasher
		token, org string
		want       []string
	}{
		{"a generated key has one", older, key, "o", []string{sum(SHA256, key)}},
		{"the base64 form is tried under the listed hash that it names", older, form, "o", []string{sum(SHA256, form), sum(Murmur64, form)}},
		{"the base64 form without a name means murmur32", older, naming(""), "o", []string{sum(SHA256, naming("")), sum(Murmur32, naming(""))}},
		{"the base64 form with sha256", older, naming("sha256"), "o", []string{sum(SHA256, naming("sha256"))}},
		{"a hash that is not listed does not count", older, naming("murmur128"), "o", []string{sum(SHA256, naming("murmur128"))}},
		{"an unknown hash does not count", older, naming("md5"), "o", []string{sum(SHA256, naming("md5"))}},
		{"no hash but SHA-256 counts where none is listed", plain, form, "o", []string{sum(SHA256, form)}},
		{"a custom id is bare or behind its organisation", plain, "me", "o", []string{sum(SHA256, "me"), sum(SHA256, "ome")}},
		{"in clear", clear, "me", "o", []string{"me", "ome"}},
		{"without an organisation", plain, "me", "", []string{sum(SHA256, "me")}},
		{"older algorithms without an organisation", older, "me", "", []string{sum(SHA256, "me"), sum(Murmur32, "me"), sum(Murmur64, "me")}},
		{"older algorithms", older, "me", "o", []string{
			sum(SHA256, "me"), sum(SHA256, "ome"),
			sum(Murmur32, "me"), sum(Murmur32, "ome"), sum(Murmur32, "eyJvcmciOiJvIiwiaWQiOiJtZSIsImgiOiJtdXJtdXIzMiJ9"),
			sum(Murmur64, "me"), sum(Murmur64, "ome"), sum(Murmur64, form),
		}},
	} {
		if got := c.h.Candidates([]byte(c.token), c.org); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// Whatever form of a key with a custom id found its legacy hash, all of its forms find one
// of the hashes that replace it.
func TestStrongHashesAreFoundByTheFormsOfAKey(t *testing.T) {
	h := Hasher{Prefix: DefaultPrefix, Legacy: []Algorithm{Murmur32, Murmur64}}
	form := base64.StdEncoding.EncodeToString([]byte(`{"org":"o","id":"me","h":"murmur64"}`))
	for _, c := range []struct {
		stored, token, org string
		others             []string // forms that must find it as well
	}{
		{"me", "me", "o", nil},
		{"ome", "me", "o", []string{"ome"}},
		{"ome", "ome", "o", []string{"me"}},
		{"me", "me", "", nil},
		{form, form, "o", nil},
		{form, "me", "o", []string{"ome", form}},
	} {
		identity := string(appendHash(nil, Murmur64, []byte(c.stored)))
		i := slices.Index(h.Candidates([]byte(c.token), c.org), identity)
		if i < 1 {
			t.Fatalf("%s does not find %s", c.token, c.stored)
		}
		strong := h.Strong([]byte(c.token), c.org, i)
		for _, token := range append(c.others, c.token) {
			found := (&Hasher{Prefix: DefaultPrefix}).Candidates([]byte(token), c.org)
			if !slices.ContainsFunc(found, func(one string) bool { return slices.Contains(strong, one) }) {
				t.Errorf("%s stored, %s sent: %s does not find %q", c.stored, c.token, token, strong)
			}
		}
	}
}

func TestCustomKeysStandBehindTheirOrganisation(t *testing.T) {
	h := Hasher{Prefix: DefaultPrefix}
	key := Generate(DefaultPrefix)
	form := base64.StdEncoding.EncodeToString([]byte(`{"org":"o","id":"me","h":"murmur64"}`))
	for _, c := range []struct{ org, id, want string }{
		{"acme", "me", "acmeme"}, {"acme", "acmeme", "acmeme"}, {"", "me", "me"}, {"acme", key, key}, {"acme", form, form},
	} {
		if got := h.Custom(c.org, c.id); got != c.want {
			t.Errorf("%s of %s is %s, want %s", c.id, c.org, got, c.want)
		}
	}
}

func TestRequestPathDoesNotAllocate(t *testing.T) {
	h := Hasher{Prefix: DefaultPrefix, Legacy: []Algorithm{Murmur32, Murmur64, Murmur128}}
	key, form := []byte(Generate(DefaultPrefix)), []byte("eyJvcmciOiJvIiwiaWQiOiJtZSIsImgiOiJtdXJtdXIzMiJ9")
	buf := make([]byte, 0, 256)
	for _, token := range [][]byte{key, form, []byte("custom")} {
		if n := testing.AllocsPerRun(100, func() {
			if !Check(DefaultPrefix, token) {
				t.Fatal("refused")
			}
			for i := 0; ; i++ {
				if _, ok := h.Candidate(buf, token, "org", i); !ok {
					return
				}
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", token, n)
		}
	}
}

func TestAlgorithmNames(t *testing.T) {
	for a := SHA256; a <= Murmur128; a++ {
		if got, err := ParseAlgorithm(a.String()); err != nil || got != a {
			t.Errorf("%v: %v, %v", a, got, err)
		}
	}
	if _, err := ParseAlgorithm("md5"); err == nil || !strings.Contains(err.Error(), "sha256") {
		t.Errorf("md5: %v", err)
	}
	if got := Algorithm(9).String(); got != "Algorithm(9)" {
		t.Error(got)
	}
}

func FuzzBase64Form(f *testing.F) {
	for _, s := range []string{`{"org":"o","id":"i","h":"murmur64"}`, `{"id":"i"}`, ` { "id" : "i" } `, `{}`, `{"id":"i",}`, `{"id":"\u0041"}`, `{"id":"i"}}`, `{"id":"i" "h":""}`} {
		f.Add(base64.StdEncoding.EncodeToString([]byte(s)))
	}
	f.Add("e")
	f.Add("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln")
	f.Fuzz(func(t *testing.T, token string) {
		h := Hasher{Legacy: []Algorithm{Murmur32}}
		if _, ok := Named([]byte(token)); ok {
			sameAsJSON(t, token)
		}
		if got := h.Hash(token); got != string(appendHash(nil, SHA256, []byte(token))) {
			t.Fatalf("hash of %q is %s", token, got)
		}
		if all := h.Candidates([]byte(token), "o"); all[0] != h.Hash(token) {
			t.Fatalf("the first candidate of %q is %s", token, all[0])
		}
	})
}

// sameAsJSON holds what parseForm reads to what encoding/json reads.
func sameAsJSON(t *testing.T, token string) {
	data, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(token)
	}
	if err != nil {
		t.Fatalf("%q is a form and not base64", token)
	}
	f, ok := parseForm(data)
	if !ok || !json.Valid(data) {
		t.Fatalf("%q: parsed %v, valid JSON %v", data, ok, json.Valid(data))
	}
	var want map[string]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"org": f.org, "id": f.id, "h": f.hash} {
		if w := want[name]; w != strings.ToValidUTF8(string(got), "\ufffd") && !strings.Contains(w, "\ufffd") {
			t.Fatalf("%s of %q is %q, want %q", name, data, got, w)
		}
	}
}

func BenchmarkCandidate(b *testing.B) {
	h := Hasher{Prefix: DefaultPrefix}
	buf := make([]byte, 0, 256)
	for _, c := range []struct{ name, token string }{{"generated", Generate(DefaultPrefix)}, {"custom", "custom"}} {
		token := []byte(c.token)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if Check(DefaultPrefix, token) {
					h.Candidate(buf, token, "org", 0)
				}
			}
		})
	}
}
