// Package didyoumean suggests names for mistyped ones.
package didyoumean

import "strings"

// Nearest returns the candidate with the least edit distance to name, or "" if none is
// close. Case and the difference of - and _ are ignored.
func Nearest(name string, candidates []string) string {
	name = Plain(name)
	best, least := "", max(len(name)/3, 1)+1
	for _, c := range candidates {
		if d := distance(name, Plain(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// Plain returns a name in lower case, with _ for -.
func Plain(name string) string {
	if len(name) > 100 { // no name is that long, and distance is quadratic
		name = name[:100]
	}
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// distance is the Damerau-Levenshtein distance of a and b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
