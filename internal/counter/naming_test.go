package counter

import "testing"

func TestNamesOfCounters(t *testing.T) {
	plain, tagged := Naming{}, Naming{Tagged: true}
	for got, want := range map[string]string{
		plain.Quota("", "key"):          "quota-key",
		plain.Quota("api", "key"):       "quota-api-key",
		plain.Rate("", "key", ""):       "rate-key",
		plain.Rate("api", "key", "17"):  "rate-api-key-17",
		plain.APIRate("api"):            "rate-api-api",
		tagged.Quota("api", "key"):      "quota-api-{key}",
		tagged.Rate("api", "key", "17"): "rate-api-{key}-17",
		tagged.APIRate("api"):           "rate-api-{api}",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
