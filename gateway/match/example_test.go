package match_test

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/match"
)

// The API with the longest listen path gets the request. Its target's path is put
// in front of the rest of the request's path, which keeps its escapes.
func Example() {
	edit := new(match.Tree[string]).Edit()
	for _, path := range []string{"/shop", "/shop/{country}/orders"} {
		if err := edit.Add(match.Entry[string]{ListenPath: path, Value: "API at " + path}); err != nil {
			fmt.Println(err)
		}
	}
	tree, err := edit.Done(func() error { return nil })
	if err != nil {
		fmt.Println(err)
	}
	target, err := match.CompileTarget("http://127.0.0.1:8080/v1")
	if err != nil {
		fmt.Println(err)
	}

	const path = "/shop/de/orders/a%2Fb"
	decoded, err := match.Decode(nil, []byte(path))
	if err != nil {
		fmt.Println(err)
	}
	var params match.Params
	api, segments, ok := tree.Find([]byte("example.com"), decoded, &params)
	country, _ := params.Get("country")
	fmt.Println(api, ok, string(country))
	rest := match.Rest([]byte(path), segments)
	fmt.Println(string(target.Join(nil, rest, []byte("limit=5"), match.JoinOptions{})))
	// Output:
	// API at /shop/{country}/orders true de
	// /v1/a%2Fb?limit=5
}
