package explain

import (
	"slices"
	"strings"
)

// masked stands for what is not told.
const masked = "***"

// least is how long a secret must be to be looked for: what is shorter is told by
// nothing.
const least = 3

// shortest is how long a secret must be to be looked for in what clients read
// as well: a shorter one would be found where it is none.
const shortest = 8

// secretNames are parts of the names of headers whose values are not told.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey"}

// maskLine leaves out the value of a header line that may hold a credential.
func maskLine(line string) string {
	name, _, _ := strings.Cut(line, ":")
	lower := strings.ToLower(name)
	if slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) }) {
		return name + ": " + masked
	}
	return line
}

// Mask takes secrets out of a report, wherever something that was sent may have
// led to its being told.
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

// Secrets returns what a description holds that is not to be told: the key, and
// what stands in headers that carry credentials, with and without a scheme.
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
