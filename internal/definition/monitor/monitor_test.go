package monitor

import (
	"encoding/json"
	"testing"
)

func TestThresholdsArePercentages(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // path of the one fault; "": none
	}{
		{`{"trigger_limits":[0.5,100]}`, ""},
		{`{"trigger_limits":[]}`, ""},
		{`{"trigger_limits":[80,0]}`, "trigger_limits[1]"},
		{`{"trigger_limits":[100.5]}`, "trigger_limits[0]"},
		{`{"trigger_limits":[-1]}`, "trigger_limits[0]"},
	} {
		var m Monitor
		if err := json.Unmarshal([]byte(c.text), &m); err != nil {
			t.Fatal(err)
		}
		faults := m.Check()
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || faults[0].Path != c.want) {
			t.Errorf("%s: %v", c.text, faults)
		}
	}
	many := &Monitor{TriggerLimits: make([]float64, maxTriggers+1)}
	for i := range many.TriggerLimits {
		many.TriggerLimits[i] = 50
	}
	if faults := many.Check(); len(faults) != 1 || faults[0].Path != "trigger_limits" {
		t.Errorf("%v", faults)
	}
	if faults := (*Monitor)(nil).Check(); faults != nil {
		t.Errorf("%v", faults)
	}
}

func TestWhatIsNotKnownIsKept(t *testing.T) {
	const text = `{"trigger_limits":[80],"more":1}`
	var m Monitor
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(m); err != nil || string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`{"trigger_limits":"all"}`), &m); err == nil {
		t.Error("a text is a list")
	}
}
