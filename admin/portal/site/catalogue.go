package site

import (
	"cmp"
	"net/url"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/credentials"
)

// offerPage is one page of the REST's catalogue.
type offerPage struct {
	Data  []*catalogue.Offer
	Pages int64
}

// perPage is how many offers a page of the catalogue shows.
const perPage = 24

// catalogueView is the page with the catalogue.
type catalogueView struct {
	Search string
	Offers []*catalogue.Offer
	Pager  *pager
}

// A pager leads to the pages before and after one of a list.
type pager struct {
	Page, Pages   int64
	Before, After string // addresses; "" for none
}

func newPager(v *visit, path string, page, pages int64) *pager {
	p := &pager{Page: page, Pages: pages}
	at := func(n int64) string {
		q := url.Values{"p": {strconv.FormatInt(n, 10)}}
		if text := v.query("q"); text != "" {
			q.Set("q", text)
		}
		return v.link(path) + "?" + q.Encode()
	}
	if page > 1 {
		p.Before = at(page - 1)
	}
	if page < pages {
		p.After = at(page + 1)
	}
	return p
}

// pageNumber returns the page of a list that the address asks for.
func (v *visit) pageNumber() int64 {
	n, err := strconv.ParseInt(v.query("p"), 10, 32)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

func showCatalogue(v *visit) error {
	view := catalogueView{Search: v.query("q")}
	n := v.pageNumber()
	q := url.Values{"p": {strconv.FormatInt(n, 10)}, "page_size": {strconv.Itoa(perPage)}}
	if view.Search != "" {
		q.Set("q", view.Search)
	}
	var found offerPage
	if err := v.get("/api/portal/public/catalogue?"+q.Encode(), &found); err != nil {
		return err
	}
	view.Offers, view.Pager = found.Data, newPager(v, "/", n, found.Pages)
	return v.show(fasthttp.StatusOK, "catalogue", "APIs", &view)
}

// apiView is the page of one API under one plan.
type apiView struct {
	Offer   *catalogue.Offer
	Plans   []*catalogue.Offer // of the same API, with this one
	Keys    []ownKey           // of the visitor, that may call the API
	Address string             // where the gateway serves the API
	Samples []sample
	Play    bool         // there is a playground
	Streams *streamsView // nil: the API has no streams
}

// ownKey is a key of the visitor with what is left of it on one API.
type ownKey struct {
	credentials.View
	On credentials.Allowance
}

func showAPI(v *visit) error {
	offer := new(catalogue.Offer)
	if err := v.get("/api/portal/public/catalogue/"+escape(v.params["api"]), offer); err != nil {
		return err
	}
	view := apiView{Offer: offer, Address: v.addressOf(offer), Play: offer.IsGraphQL && v.site.deps.Playground != nil}
	var err error
	if offer.APIID != "" {
		if view.Plans, err = v.offersOf(url.Values{"api_id": {offer.APIID}}); err != nil {
			return err
		}
		if view.Keys, err = v.keysFor(offer.APIID); err != nil {
			return err
		}
		view.Samples = samplesOf(newRequest("GET", view.Address, offer))
	}
	if offer.HasStreams {
		if view.Streams, err = v.streams(offer, view.Address); err != nil {
			return err
		}
		view.Samples = view.Streams.samples(offer)
	}
	return v.show(fasthttp.StatusOK, "api", offer.Name, &view)
}

// offersOf returns the offers that match a filter.
func (v *visit) offersOf(filter url.Values) ([]*catalogue.Offer, error) {
	filter.Set("page_size", "100")
	var found offerPage
	err := v.get("/api/portal/public/catalogue?"+filter.Encode(), &found)
	return found.Data, err
}

// keysFor returns the visitor's keys that may call an API.
func (v *visit) keysFor(api string) (own []ownKey, err error) {
	if v.me == nil {
		return nil, nil
	}
	all, err := v.keys()
	for _, k := range all {
		for _, a := range k.APIs {
			if a.API == api {
				own = append(own, ownKey{k, a})
			}
		}
	}
	return own, err
}

// addressOf returns the URL at which gateways serve the API of an offer.
func (v *visit) addressOf(o *catalogue.Offer) string {
	gateway := "https://gateway.example.com"
	if v.site.deps.Gateway != nil {
		gateway = cmp.Or(v.site.deps.Gateway(), gateway)
	}
	if u, err := url.Parse(gateway); err == nil && o.Domain != "" {
		host := o.Domain
		if port := u.Port(); port != "" {
			host += ":" + port
		}
		gateway = u.Scheme + "://" + host
	}
	return gateway + o.ListenPath
}
