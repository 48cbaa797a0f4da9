package traffic

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// handing gives an API the versions that other APIs are.
func handing(def object, others object) object {
	def["definition"] = object{"enabled": true, "name": "v1", "default": "v1", "location": "header", "key": "X-Version", "versions": others}
	return def
}

func TestRequestsGoOnToOtherAPIs(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	far, farAddress := newScripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfar")
	inside := rig.APIDef("inside", "http://"+address+"/inside", false)
	inside["internal"] = true
	back := rig.APIDef("back", "http://"+address+"/back", true)
	back["name"] = "Back office"
	front := unversioned(handing(rig.APIDef("front", "svc://inside/from-front", true), object{"v2": "back"}), object{
		"use_extended_paths": true, "extended_paths": object{"url_rewrites": []object{
			{"path": "/far", "match_pattern": "^/far/(.*)", "rewrite_to": "http://" + farAddress + "/there/$1"},
			{"path": "/office", "match_pattern": "^/office/(.*)", "rewrite_to": "svc://back-office/$1"},
		}},
	})
	g := newTraffic(t, settings{"gateway.error_detail": "reason"}, nil, inside, back, front, rig.APIDef("round", "svc://about", true), rig.APIDef("about", "svc://round", true))
	key := g.newKey(object{"access_rights": rig.AccessTo("inside"), "quota_max": 5, "quota_renewal_rate": 60})
	for _, c := range []struct {
		path, headers    string
		status           int
		reached, missing string
	}{
		{"/front/x", "", 401, "", "auth_missing"},
		{"/front/x?a=b", "Authorization: " + key + "\r\n", 200, "GET /inside/from-front/x?a=b HTTP/1.1", ""},
		{"/front/x", "X-Version: v2\r\n", 200, "GET /back/x HTTP/1.1", ""},
		{"/front/office/7", "", 200, "GET /back/7 HTTP/1.1", ""},
		{"/round/x", "", 508, "", "handover_loop"},
		{"/inside/x", "Authorization: " + key + "\r\n", 404, "", "route_not_found"},
	} {
		answered := conversation(t, g.addr, "GET "+c.path+" HTTP/1.1\r\nHost: a\r\n"+c.headers+"Connection: close\r\n\r\n")
		if !strings.HasPrefix(answered, fmt.Sprintf("HTTP/1.1 %d ", c.status)) || !strings.Contains(answered, c.missing) {
			t.Errorf("%s: %s", c.path, answered)
		}
		if asked := up.lastHead(); c.reached != "" && !strings.HasPrefix(asked, c.reached+"\r\n") {
			t.Errorf("%s reached %s", c.path, asked)
		}
	}
	if got := conversation(t, g.addr, "GET /front/far/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(got, "far") {
		t.Error(got)
	}
	if head := far.lastHead(); !strings.HasPrefix(head, "GET /there/7 HTTP/1.1\r\nHost: "+farAddress+"\r\n") {
		t.Error(head)
	}
	// One request counts once for the key, and is told of by both APIs.
	var session struct {
		Left int `json:"quota_remaining"`
	}
	g.ask(http.MethodGet, "/svc/keys/"+key, nil).Into(t, &session)
	if session.Left != 4 {
		t.Errorf("%d calls are left of 5", session.Left)
	}
	rig.Eventually(t, "both APIs in the access log", func() error {
		for _, api := range []string{"front", "inside", "back"} {
			if err := rig.Lacks(g.logged(), `"api":"`+api+`"`); err != nil {
				return err
			}
		}
		return nil
	})
	explained := g.ask(http.MethodPost, "/svc/explain", object{"url": "/front/x", "key": key}).Body
	for _, want := range []string{`"api":"inside"`, `"stage":"auth"`, `goes on to API inside`, `"target":"/inside/from-front/x"`} {
		if !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(explained, `": `, `":`), "\n", ""), want) {
			t.Errorf("the explanation lacks %s: %s", want, explained)
		}
	}
}

func TestTunnelsThroughSeveralAPIsEndWithTheKeyOfAnyOfThem(t *testing.T) {
	t.Parallel()
	url := newEcho(t)
	g := newTraffic(t, settings{"gateway.websockets": "true"}, nil,
		rig.APIDef("inner", url, false), rig.APIDef("outer", "svc://inner", true), handing(rig.APIDef("family", url, true), object{"v2": "inner"}))
	session := object{"access_rights": rig.AccessTo("inner"), "rate": 100, "per": 1}
	key, other := g.newKey(session), g.newKey(session)
	stays := g.speak("/outer/x", "Authorization", other)
	behind, version := g.speak("/outer/x", "Authorization", key), g.speak("/family/x", "Authorization", key, "X-Version", "v2")
	g.showsTunnels("inner", 3)
	since := time.Now()
	if got := g.ask(http.MethodDelete, "/svc/keys/"+key, nil); got.Status != 200 {
		t.Fatal(got)
	}
	g.cutsSoon(behind, "behind a target", since)
	g.cutsSoon(version, "behind a version", since)
	g.showsTunnels("inner", 1)
	g.hear(stays, "still here")
}
