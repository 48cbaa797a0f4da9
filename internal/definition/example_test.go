package definition_test

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
)

// Members that this version does not know survive.
func ExampleParseAPI() {
	api, err := definition.ParseAPI([]byte(`{
		"api_id": "shop", "name": "Shop", "use_keyless": true, "x_owner": "team a",
		"proxy": {"listen_path": "/shop/", "target_url": "http://127.0.0.1:8080/", "strip_listen_path": true}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	api.Name = "The shop"
	text, err := json.Marshal(api)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output:
	// {"api_id":"shop","name":"The shop","use_keyless":true,"proxy":{"listen_path":"/shop/","target_url":"http://127.0.0.1:8080/","strip_listen_path":true},"x_owner":"team a"}
}

// The error lists all problems, each with its path.
func ExampleParseAPI_problems() {
	_, err := definition.ParseAPI([]byte(`{"api_id": "shop", "proxy": {"listen_path": "shop", "target_url": "ftp://127.0.0.1/"}}`))
	fmt.Println(err)
	// Output:
	// proxy.listen_path: must begin with "/", as in /orders/; proxy.target_url: must begin with http:// or https://
}
