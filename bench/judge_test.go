package bench

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestJudgeFailsForCasesThatCostMore(t *testing.T) {
	for _, c := range []struct{ name, now, change, allocs, want string }{
		{"Request/same", "2.0e-05", "~", "0", ""},
		{"Request/faster", "1.5e-05", "-25.00%", "0", ""},
		{"Request/within the margin", "2.04e-05", "+2.00%", "0", ""},
		{"Request/slower", "2.2e-05", "+10.00%", "0", "slower: Request/slower +10.00%"},
		{"Request/allocates", "2.0e-05", "~", "1", "allocates: Request/allocates 0 -> 1"},
	} {
		csv := fmt.Sprintf(",base,,now,,,\n,sec/op,CI,sec/op,CI,vs base,P\n%[1]s,2.0e-05,0%%,%[2]s,0%%,%[3]s,p=0.000 n=12\ngeomean,2e-05,,2e-05,,+10.0%%,\n\n"+
			",base,,now,,,\n,allocs/op,CI,allocs/op,CI,vs base,P\n%[1]s,0,0%%,%[4]s,0%%,?,p=0.000 n=12\ngeomean,,,,,?,\n", c.name, c.now, c.change, c.allocs)
		judge := exec.Command("awk", "-F,", "-v", "margin=3", "-f", "judge.awk")
		judge.Stdin = strings.NewReader(csv)
		out, err := judge.Output()
		if got := strings.TrimSpace(string(out)); got != c.want || (err != nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
