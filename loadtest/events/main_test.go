package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

func TestEverySubscriptionGetsEachMessage(t *testing.T) {
	server := httptest.NewServer(newServer(10))
	defer server.Close()
	s, err := load.OpenSockets(t.Context(), strings.TrimPrefix(server.URL, "http://"), "/", 3, func(int) http.Header { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Each(`{"id":"1","type":"subscribe","payload":{"query":"subscription { event { n } }"}}`); err != nil {
		t.Fatal(err)
	}
	within := time.Now().Add(30 * time.Second)
	for read(t, http.Get, server.URL+"/count") != "3" {
		if time.Now().After(within) {
			t.Fatal("not all are subscribed")
		}
	}
	post := func(url string) (*http.Response, error) { return http.Post(url, "", http.NoBody) }
	for range 2 {
		if got := read(t, post, server.URL+"/publish"); got != "3" {
			t.Fatalf("published to %s, want 3", got)
		}
	}
	for n := 0; n < 6; n, err = s.Heard() {
		if err != nil || time.Now().After(within) {
			t.Fatalf("%d messages, %v", n, err)
		}
	}
}

func read(t *testing.T, do func(string) (*http.Response, error), url string) string {
	t.Helper()
	resp, err := do(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
