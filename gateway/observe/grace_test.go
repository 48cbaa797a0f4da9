package observe

import "testing"

func TestRequestsWithAKeyInGraceAreCountedAndLogged(t *testing.T) {
	o := New(Options{Log: quiet()})
	m := o.NewMeter("sample")
	m.Done(exchange("GET", "/sample/things", 200))
	old := exchange("GET", "/sample/things", 200)
	old.InGrace, old.KeyName = true, "0123456789ab"
	m.Done(old)
	m.Done(old)
	expect(t, scrape(t, o), `sluice_retiring_key_requests_total{api="sample"} 2`)
	if got := lineOf(t, old, 200); got["key_retires"] != true || got["key"] != "0123456789ab" {
		t.Errorf("logged %v", got)
	}
	if _, there := lineOf(t, exchange("GET", "/a", 200), 200)["key_retires"]; there {
		t.Error("a request without such a key says so")
	}
}
