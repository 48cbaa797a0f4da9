package graph_test

import (
	"testing"
)

func TestTry(t *testing.T) {
	w := newShop(t)
	for _, q := range []string{`{ me { id name reviews(first: 3) { body } greeting } }`, `{ top { name shipping reviews { body author { name parcels } } } }`,
	`{ feed { ... on Product { name upc } ... on Review { body product { pallets } } } }`, 
	`{ users { town secret: parcels } top(first: 4) { warehouse { city capacity } } }`, `{ top { secret } }`} {
		_, got := w.ask(q)
		t.Log(got)
		for _, a := range w.asked() { t.Log("   ", a) }
	}
}
