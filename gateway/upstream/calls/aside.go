package calls

import "github.com/sluicegate/sluice/gateway/upstream"

// Aside returns what makes stages, with connections of pools, that share nothing
// with those of c: nobody is checked or told of for their sake.
func (c *Calls) Aside(pools *upstream.Pools) *Calls {
	o := c.opts
	o.Pools = pools
	return New(o)
}
