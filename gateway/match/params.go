package match

import "bytes"

// MaxParams is how many parameters a listen path may have.
const MaxParams = 16

// Params holds the values that the parameters of a listen path took in one
// request. Its zero value is empty and ready for use. The values alias the path
// given to [Tree.Find] and live as long as that does.
type Params struct {
	names  []string // the tree's; never written to
	values [MaxParams][]byte
}

// Len returns the number of parameters.
func (p *Params) Len() int { return len(p.names) }

// At returns the name and value of the i-th parameter, from the left.
func (p *Params) At(i int) (name string, value []byte) { return p.names[i], p.values[i] }

// Get returns the value of a parameter, and whether the listen path has it. The
// value is one decoded segment and never empty.
func (p *Params) Get(name string) (value []byte, ok bool) {
	for i, n := range p.names {
		if n == name {
			return p.values[i], true
		}
	}
	return nil, false
}

// Reset empties p, so that it keeps no request's bytes alive.
func (p *Params) Reset() {
	clear(p.values[:len(p.names)])
	p.names = nil
}

// fill takes the values of the parameters in the given segments of path.
func (p *Params) fill(names []string, segments []int, path []byte) {
	p.Reset()
	p.names = names
	at, segment := 0, 0
	for i, wanted := range segments {
		for ; segment < wanted; segment++ {
			at += 1 + bytes.IndexByte(path[at+1:], '/')
		}
		value := path[at+1:]
		if end := bytes.IndexByte(value, '/'); end >= 0 {
			value = value[:end:end]
		}
		p.values[i] = value
	}
}
