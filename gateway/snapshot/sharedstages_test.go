package snapshot

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

func tokenCompilation(shared *sharedStages) *compilation {
	sessions := auth.NewSessions(auth.SessionOptions{
		Store: keystore.NewMemory(), Hasher: &credential.Hasher{}, Log: slog.New(slog.DiscardHandler),
		Size: 100, TTL: time.Minute, UnknownSize: 100, UnknownTTL: time.Second, Timeout: time.Second,
	})
	return &compilation{Compiler: &Compiler{Stages: Stages{Auth: auth.New(sessions, 3)}}, shared: shared}
}

func authOf(t *testing.T, c *compilation, def *definition.API) pipeline.Stage {
	t.Helper()
	c.def = def
	stage, err := c.auth()
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

func TestAPIsThatAskForTheSameTokenShareAStage(t *testing.T) {
	s := tokenCompilation(newSharedStages())
	usual := &definition.API{ID: "a", OrgID: "o", StripAuthData: true}
	first := authOf(t, s, usual)
	if again := authOf(t, s, &definition.API{ID: "b", Name: "other", OrgID: "o", StripAuthData: true, UseStandardAuth: true}); again != first {
		t.Error("two APIs have a stage each")
	}
	if authOf(t, tokenCompilation(nil), usual) == first {
		t.Error("a stage outlives the compilation")
	}
	elsewhere := &definition.Auth{UseParam: true}
	for name, other := range map[string]*definition.API{
		"organisation": {OrgID: "p", StripAuthData: true}, "stripping": {OrgID: "o"}, "older place": {OrgID: "o", StripAuthData: true, Auth: elsewhere},
		"place": {OrgID: "o", StripAuthData: true, AuthConfigs: map[string]*definition.Auth{"authToken": elsewhere}},
		"OAuth": {OrgID: "o", StripAuthData: true, UseOAuth2: true},
	} {
		if authOf(t, s, other) == first {
			t.Errorf("%s: of another API", name)
		}
	}
	if keyless := authOf(t, s, &definition.API{OrgID: "o", StripAuthData: true, UseKeyless: true}); keyless != nil {
		t.Errorf("nobody is asked, by %v", keyless)
	}
}

// What the stage is shared by has to be all that it depends on: every other member
// of a definition is changed in turn, and the stage is the same.
func TestATokenStageDependsOnNothingElse(t *testing.T) {
	s := tokenCompilation(nil)
	plain := definition.API{OrgID: "o", StripAuthData: true}
	want := authOf(t, s, &plain)
	fields := reflect.TypeFor[definition.API]()
	for i := range fields.NumField() {
		def := plain
		fill(reflect.ValueOf(&def).Elem().Field(i))
		if key, same := tokenAuthOf(&def); !same || key != (tokenAuth{org: "o", strip: true}) {
			continue
		}
		if got := authOf(t, s, &def); !reflect.DeepEqual(got, want) {
			t.Errorf("%s makes another stage", fields.Field(i).Name)
		}
	}
}

// fill gives a value something to say, and all that is in it.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte("{}"))
		return
	case !v.CanSet():
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), one)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	}
}
