package shell

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhatIsTooLargeIsNotSent(t *testing.T) {
	sent := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent = true }))
	defer s.Close()
	c, err := NewAdmin(s.URL, "sla_key")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Call(t.Context(), "POST", "/api/config/apply", strings.Repeat("x", maxRequest))
	if err == nil || !strings.Contains(err.Error(), "at most 64 at once") || sent {
		t.Errorf("%v, sent %v", err, sent)
	}
}

func TestRefusalsAreToldWithEveryProblem(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"Status":"Error","Message":"Validation failed","Errors":["a: is wrong",{"path":"b","message":"is too"}]}`))
	}))
	c, err := NewAdmin(s.URL+"/", "sla_key")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Call(t.Context(), "GET", "/x", nil)
	if refusedError, ok := errors.AsType[*RefusedError](err); !ok || refusedError.Status != 400 || refusedError.Error() != "Validation failed\n  a: is wrong\n  b: is too" {
		t.Errorf("%v", err)
	}
	s.Close()
	if _, err = c.Call(t.Context(), "GET", "/x", nil); err == nil || strings.Contains(err.Error(), "sla_key") {
		t.Errorf("of a server that is gone: %v", err)
	} else if _, ok := errors.AsType[*UnreachableError](err); !ok {
		t.Errorf("of a server that is gone: %v", err)
	}
}
