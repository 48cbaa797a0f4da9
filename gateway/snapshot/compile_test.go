package snapshot

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/access"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stage/limit"
	"github.com/sluicegate/sluice/gateway/stage/overload"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// makeAPI compiles a definition as a gateway does.
func makeAPI(t *testing.T, def *definition.API) *pipeline.API {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	pools := upstream.NewPools()
	t.Cleanup(pools.Close)
	limiter := limit.New(limit.Options{Counter: counter.NewMemory(nil), Log: log})
	sessions := auth.NewSessions(auth.SessionOptions{
		Store: keystore.NewMemory(), Hasher: &credential.Hasher{}, Log: log, Size: 10, TTL: time.Minute,
		UnknownSize: 10, UnknownTTL: time.Second, Timeout: 30 * time.Second,
	})
	s := NewCompiler(Stages{
		Auth: auth.New(sessions, 3), Access: access.New(access.Options{Log: log}), Limit: limiter, Pools: pools,
		GraphQL:  graphql.New(graphql.Options{Log: log}),
		Overload: overload.New(overload.Options{TargetDelay: time.Second, MaxDelay: time.Second}, log),
		Upstream: upstream.Config{DialTimeout: 30 * time.Second, ResponseTimeout: 30 * time.Second, MaxConns: 1, IdleTimeout: time.Minute},
		Meter:    func(string) pipeline.Meter { return nil },
	}, log)
	api, err := s.compile(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func versionedDef(byDefault string) *definition.API {
	return &definition.API{
		ID: "a", Proxy: definition.Proxy{ListenPath: "/a/", TargetURL: "http://127.0.0.1:9"},
		VersionData: &definition.VersionData{DefaultVersion: byDefault, Versions: map[string]*definition.Version{
			"v2": {Paths: &definition.PathLists{Ignored: []string{"/open"}}}, "v1": {}, "v3": {},
		}},
	}
}

func TestEveryVersionIsCompiledInItsPlace(t *testing.T) {
	api := makeAPI(t, versionedDef("v2"))
	for i, name := range []string{"v1", "v2", "v3"} {
		v := api.Versions[i]
		if v.Name != name || v.Place != i || v.Definition != api.Definition.VersionData.Versions[name] || v.Forward == nil {
			t.Errorf("version %d is %+v", i, v)
		}
		if open := len(v.Open) > 0; open != (name == "v2") {
			t.Errorf("%s has stages for calls without a key: %v", name, open)
		}
	}
	if len(api.Versions) != 3 || api.Version != api.Versions[1] {
		t.Errorf("%d versions, of which %q is the default", len(api.Versions), api.Version.Name)
	}
}

// With a share for each version, an API would take what is others' by having
// many.
func TestTheVersionsOfAnAPIHaveOneShareOfAnOverload(t *testing.T) {
	api := makeAPI(t, versionedDef(""))
	shed := overload.New(overload.Options{TargetDelay: time.Second, MaxDelay: time.Second}, nil).Compile(new(overload.Stage), api.Definition)
	if shed == nil {
		t.Fatal("nothing is shed")
	}
	var common []pipeline.CompiledStage
	for _, stages := range [][]pipeline.CompiledStage{api.Versions[0].Request, api.Versions[1].Request, api.Versions[1].Open, api.Versions[2].Request} {
		if common == nil {
			common = slices.Clone(stages)
		}
		common = slices.DeleteFunc(common, func(s pipeline.CompiledStage) bool { return !slices.Contains(stages, s) })
	}
	if len(common) != 1 {
		t.Errorf("versions have %d stages in common, want that of overload alone", len(common))
	}
}

func TestAnAPIWithoutVersionsHasOne(t *testing.T) {
	def := versionedDef("")
	def.VersionData = nil
	if api := makeAPI(t, def); len(api.Versions) != 1 || api.Version != api.Versions[0] || api.Version.Name != "" || api.Version.Open != nil {
		t.Errorf("%+v", api.Versions)
	}
}

func TestTargetsOfVersionsStandForThatOfTheAPI(t *testing.T) {
	def := versionedDef("v1")
	def.Proxy.EnableLoadBalancing = true
	def.VersionData.Versions["v1"].OverrideTarget = "http://127.0.0.1:10/x"
	own := targeted(def, def.VersionData.Versions["v1"])
	if own.Proxy.TargetURL != "http://127.0.0.1:10/x" || own.Proxy.EnableLoadBalancing || def.Proxy.TargetURL != "http://127.0.0.1:9" {
		t.Errorf("%+v of %+v", own.Proxy, def.Proxy)
	}
	if targeted(def, def.VersionData.Versions["v3"]) != def || targeted(def, nil) != def {
		t.Error("versions without a target are given one")
	}
}
