package definition

import "testing"

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
		_, faults := checked(c.text, (*Monitor).check)
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || faults[0].Path != c.want) {
			t.Errorf("%s: %v", c.text, faults)
		}
	}
	many := &Monitor{TriggerLimits: make([]float64, maxQuotaTriggers+1)}
	for i := range many.TriggerLimits {
		many.TriggerLimits[i] = 50
	}
	if faults := many.check(); len(faults) != 1 || faults[0].Path != "trigger_limits" {
		t.Errorf("%v", faults)
	}
	if faults := (*Monitor)(nil).check(); faults != nil {
		t.Errorf("%v", faults)
	}
}
