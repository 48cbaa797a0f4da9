package explain

import (
	"slices"
	"strings"
)

// masked replaces secrets.
const masked = "***"

// least is the length of the shortest secret that is masked: shorter ones match too
// much.
const least = 3

// shortest is the length of the shortest secret that is masked in answers as well,
// where shorter ones match by accident.
const shortest = 8

// secretNames are parts of the names of headers whose values are masked.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey"}

// maskLine masks the value of a header line that may hold a credential.
func maskLine(line string) string {
	name, _, _ := strings.Cut(line, ":")
	lower := strings.ToLower(name)
	if slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) }) {
		return name + ": " + masked
	}
	return line
}

// Mask masks secrets in all parts of a report that may repeat parts of the request.
func (r *Report) Mask(secrets ...string) {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < least })
	if len(secrets) == 0 {
		return
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	hide := replacer(secrets)
	r.Path = hide(r.Path)
	for i := range r.Steps {
		f := &r.Steps[i].Finding
		f.Said, f.Fix = hide(f.Said), hide(f.Fix)
		for j := range f.Facts {
			f.Facts[j].Value, f.Facts[j].Seen = hide(f.Facts[j].Value), hide(f.Facts[j].Seen)
		}
	}
	if p := r.Outcome.Upstream; p != nil {
		p.Target = hide(p.Target)
		for i := range p.Added {
			p.Added[i] = hide(p.Added[i])
		}
	}
	r.Outcome.Fix = hide(r.Outcome.Fix)
	long := replacer(slices.DeleteFunc(secrets, func(s string) bool { return len(s) < shortest }))
	r.Outcome.Body = long(r.Outcome.Body)
	for i := range r.Outcome.Headers {
		r.Outcome.Headers[i] = long(r.Outcome.Headers[i])
	}
}

func replacer(secrets []string) func(string) string {
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, masked)
	}
	return strings.NewReplacer(pairs...).Replace
}

// Secrets returns the secrets of a description: the key, and the values of headers
// that carry credentials, with and without a scheme.
func (r *Request) Secrets() []string {
	all := []string{r.Key}
	for _, h := range r.Headers {
		if maskLine(h.Name+":") == h.Name+":" {
			continue
		}
		all = append(all, h.Value)
		if _, after, found := strings.Cut(h.Value, " "); found {
			all = append(all, strings.TrimSpace(after))
		}
	}
	return all
}
