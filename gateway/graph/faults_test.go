package graph_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

func TestFaultsOfSourcesArePartialData(t *testing.T) {
	w := newWorld(t)
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	}
	status := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/users")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
		}
	}
	w.apply("slow", func(api *definition.API) {
		for i := range api.GraphQL.Engine.DataSources {
			if s := &api.GraphQL.Engine.DataSources[i]; s.Name == "weather" {
				s.Config.Timeout = 0.3
			}
		}
	})
	const weather, me, todos = `{ me { name } weather(city: "Ulm") { degrees } }`, `{ me { name } weather(city: "Ulm") { degrees } }`, `{ users { name todos { title } } }`
	for _, c := range []struct {
		name, path string
		answer     http.HandlerFunc
		query      string
		want       string
	}{
		{"REST: status", "/weather/Ulm", status(503, "away"), weather, `{"errors":[{"message":"data source \"weather\": status 503","path":["weather"]}],"data":{"me":{"name":"Ada"},"weather":null}}`},
		{"REST: redirect", "/weather/Ulm", status(302, ""), weather, `{"errors":[{"message":"data source \"weather\": status 302, and redirects are not followed","path":["weather"]}],"data":{"me":{"name":"Ada"},"weather":null}}`},
		{"REST: HTML", "/weather/Ulm", status(200, "<html>"), weather, `{"errors":[{"message":"data source \"weather\": the response is not JSON","path":["weather"]}],"data":{"me":{"name":"Ada"},"weather":null}}`},
		{"REST: 204", "/weather/Ulm", status(204, ""), weather, `{"data":{"me":{"name":"Ada"},"weather":null}}`},
		{"REST: slow", "/weather/Ulm", hang, weather, `{"errors":[{"message":"data source \"weather\": no answer within 300ms","path":["weather"]}],"data":{"me":{"name":"Ada"},"weather":null}}`},
		{"REST: scalar for object", "/weather/Ulm", status(200, `"warm"`), weather, `{"errors":[{"message":"Object cannot represent non-object value.","path":["weather"]}],"data":null}`},
		{"REST: wrong scalar", "/weather/Ulm", status(200, `{"degrees":"warm"}`), weather, `{"errors":[{"message":"Float cannot represent non-float value: \"\"warm\"\"","path":["weather","degrees"]}],"data":{"me":{"name":"Ada"},"weather":null}}`},
		{"REST: one of a list", "/todos/2", status(500, ""), todos, `{"errors":[{"message":"data source \"todos\": status 500","path":["users",1,"todos"]}],"data":{"users":[{"name":"Ada","todos":[{"title":"todo of 1"}]},{"name":"Bob","todos":null}]}}`},
		{"REST: a scalar of one of a list", "/score", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "of=1" {
				w.WriteHeader(400)
			}
		}, `{ users { score } }`, `{"errors":[{"message":"data source \"scores\": status 400","path":["users",0,"score"]}],"data":{"users":[{"score":null},{"score":null}]}}`},
		{"REST: a scalar of one object", "/score", status(500, ""), `{ me { score } }`, `{"errors":[{"message":"data source \"scores\": status 500","path":["me","score"]}],"data":{"me":{"score":null}}}`},
		{"REST: 204 for one object", "/score", status(204, ""), `{ me { score } }`, `{"data":{"me":{"score":null}}}`},
		{"REST: null in non-null", "/todos/2", status(200, `{"list":{"items":[{"text":["a"]}]}}`), `{ users { name todos { title done } } }`, `{"errors":[{"message":"Cannot return null for non-nullable field 'Query.users.todos.done'.","path":["users",1,"todos",0,"done"]}],"data":{"users":[{"name":"Ada","todos":[{"title":"todo of 1","done":true}]},{"name":"Bob","todos":null}]}}`},
		{"REST: non-null root", "/strict", status(500, ""), `{ me { name } strict { city } }`, `{"errors":[{"message":"data source \"strict\": status 500","path":["strict"]}],"data":null}`},
		{"GraphQL: status", "/users", status(500, "oops"), me, `{"errors":[{"message":"data source \"users\": status 500","path":["me"]}],"data":{"me":null,"weather":{"degrees":7.5}}}`},
		{"GraphQL: HTML", "/users", status(200, "<html>"), me, `{"errors":[{"message":"data source \"users\": the response is not one of GraphQL","path":["me"]}],"data":{"me":null,"weather":{"degrees":7.5}}}`},
		{"GraphQL: 204", "/users", status(204, ""), me, `{"errors":[{"message":"data source \"users\": the response is not one of GraphQL","path":["me"]}],"data":{"me":null,"weather":{"degrees":7.5}}}`},
		{"GraphQL: redirect", "/users", status(307, ""), me, `{"errors":[{"message":"data source \"users\": status 307, and redirects are not followed","path":["me"]}],"data":{"me":null,"weather":{"degrees":7.5}}}`},
		{"GraphQL: errors with data", "/users", status(200, `{"data":{"me":{"name":null}},"errors":[{"message":"no name","path":["me","name"],"extensions":{"code":"X","stack":"secret"}}]}`), me, `{"errors":[{"message":"no name","path":["me","name"],"extensions":{"code":"X"}}],"data":{"me":{"name":null},"weather":{"degrees":7.5}}}`},
		{"GraphQL: errors without a path", "/users", status(400, `{"errors":[{"message":"bad"}]}`), me, `{"errors":[{"message":"bad","path":["me"]}],"data":{"me":null,"weather":{"degrees":7.5}}}`},
		{"GraphQL: null in non-null", "/users", status(200, `{"data":{"me":{"id":null}}}`), `{ me { id } weather(city: "Ulm") { degrees } }`, `{"errors":[{"message":"Cannot return null for non-nullable field 'Query.me.id'.","path":["me","id"]}],"data":{"me":null,"weather":{"degrees":7.5}}}`},
		{"GraphQL: wrong type", "/users", status(200, `{"data":{"me":[1]}}`), me, `{"errors":[{"message":"Object cannot represent non-object value.","path":["me"]}],"data":null}`},
	} {
		before := w.answers[c.path]
		w.does(c.path, c.answer)
		if status, got := w.ask(c.query); status != 200 || got != c.want {
			t.Errorf("%s\n got %d %s\nwant %s", c.name, status, got, c.want)
		}
		w.does(c.path, before)
	}
}

// A client that leaves ends the requests to sources, those within the gateway as well.
func TestAClientThatLeavesEndsTheRequestsToSources(t *testing.T) {
	w := newWorld(t)
	for name, apply := range map[string]func(){
		"services": func() { w.apply("services") },
		"an API": func() {
			w.applyBeside("an API", []*definition.API{parsed(t, "up", w.URL, `, "use_keyless": true`)}, through(w, "up"))
		},
	} {
		apply()
		arrived, ended := make(chan struct{}, 3), make(chan struct{}, 3)
		hang := func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			<-r.Context().Done()
			ended <- struct{}{}
		}
		w.does("/users", hang)
		w.does("/weather/Ulm", hang)
		w.does("/weather/Rom", hang)
		ctx, leave := context.WithCancel(t.Context())
		body := `{"query":` + quoted(`{ me { name } a: weather(city: "Ulm") { city } b: weather(city: "Rom") { city } }`) + `}`
		req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.Addr+"/graph/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			failed <- err
		}()
		for range 3 {
			<-arrived
		}
		leave()
		if err := <-failed; err == nil {
			t.Errorf("%s: there is a response", name)
		}
		for range 3 {
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatalf("%s: a request goes on", name)
			}
		}
	}
}

func TestASourceThatIsAwayIsSaid(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ url, want string }{
		{"http://127.0.0.1:1/x", "it cannot be reached"},
		{"http://169.254.169.254/latest", "its address may not be called"},
	} {
		w.apply(c.url, func(api *definition.API) {
			for i := range api.GraphQL.Engine.DataSources {
				if s := &api.GraphQL.Engine.DataSources[i]; s.Name == "users" || s.Name == "strict" {
					s.Config.URL = c.url
				}
			}
		})
		for _, query := range []string{`{ me { name } }`, `{ strict { city } }`} {
			if _, got := w.ask(query); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", c.url, got)
			}
		}
	}
}
