package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metricNames are the metrics that exist, with their labels.
type metricNames map[string]map[string]bool

var (
	seriesForm = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? ?`)
	labelForm  = regexp.MustCompile(`(\w+)="`)
)

// knownMetrics returns the metrics that a gateway has, as its expected scrape lists
// them, and those of Go and of the process.
func knownMetrics(t *testing.T) metricNames {
	t.Helper()
	var scrapes []byte
	for _, name := range []string{"testdata/scrape-gateway.txt", "testdata/scrape-admin.txt"} {
		scrape, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scrapes = append(scrapes, scrape...)
	}
	all := metricNames{"up": labelSet(""), "sluice_overload_limit": labelSet("")} // the latter is there while calls are shed
	for line := range strings.Lines(string(scrapes)) {
		m := seriesForm.FindStringSubmatch(line)
		if m == nil {
			continue // help or type
		}
		if all[m[1]] == nil {
			all[m[1]] = labelSet("")
		}
		for _, label := range labelForm.FindAllStringSubmatch(m[2], -1) {
			all[m[1]][label[1]] = true
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		all[f.GetName()] = labelSet("")
	}
	return all
}

// labelSet returns labels, with those that Prometheus adds.
func labelSet(list string) map[string]bool {
	set := map[string]bool{"job": true, "instance": true}
	for label := range strings.SplitSeq(list, ",") {
		set[label] = true
	}
	return set
}

var (
	textForm     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	windowForm   = regexp.MustCompile(`\[[^\]]*\]`)
	selectorForm = regexp.MustCompile(`([a-z_][a-z0-9_:]*)\{([^}]*)\}`)
	groupForm    = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left)\s*\(([^)]*)\)`)
	nameForm     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	matcherForm  = regexp.MustCompile(`^\s*([a-z_]+)\s*(?:=~|!~|!=|=)""\s*$`)
)

// words are those of the language that are used.
var words = map[string]bool{
	"sum": true, "rate": true, "increase": true, "by": true, "histogram_quantile": true, "topk": true, "bottomk": true, "min": true, "max": true,
	"absent": true, "count": true, "time": true, "and": true, "or": true,
}

// problems returns what is wrong with an expression.
func (k metricNames) problems(expr string) (all []string) {
	bare := windowForm.ReplaceAllString(textForm.ReplaceAllString(expr, `""`), "")
	for _, pair := range []string{"()", "{}", "[]"} {
		if text := textForm.ReplaceAllString(expr, ""); strings.Count(text, pair[:1]) != strings.Count(text, pair[1:]) {
			all = append(all, "unbalanced "+pair)
		}
	}
	for _, m := range selectorForm.FindAllStringSubmatch(bare, -1) {
		for matcher := range strings.SplitSeq(m[2], ",") {
			label := matcherForm.FindStringSubmatch(matcher)
			if label == nil {
				all = append(all, "no matcher: "+matcher)
			} else if k[m[1]] != nil && !k[m[1]][label[1]] {
				all = append(all, fmt.Sprintf("%s has no label %s", m[1], label[1]))
			}
		}
	}
	bare = selectorForm.ReplaceAllString(bare, "$1")
	labels := make(map[string]bool)
	var grouped []string
	for _, m := range groupForm.FindAllStringSubmatch(bare, -1) {
		grouped = append(grouped, nameForm.FindAllString(m[1], -1)...)
	}
	for _, name := range nameForm.FindAllString(groupForm.ReplaceAllString(bare, ""), -1) {
		switch {
		case words[name]:
		case k[name] == nil:
			all = append(all, "there is no metric "+name)
		default:
			for label := range k[name] {
				labels[label] = true
			}
		}
	}
	for _, label := range grouped {
		if !labels[label] {
			all = append(all, "grouped by a label that no metric has: "+label)
		}
	}
	return all
}

func TestExpressionsWithUnknownMetricsAreFound(t *testing.T) {
	k := knownMetrics(t)
	for expr, want := range map[string]string{
		`sum by (api) (rate(sluice_requests_total{code="5xx"}[5m]))`:                     "",
		`histogram_quantile(0.5, sum by (le) (rate(sluice_request_seconds_bucket[5m])))`: "",
		`sum(rate(sluice_request_total[5m]))`:                                            "there is no metric sluice_request_total",
		`sluice_requests_total{cod="5xx"}`:                                               "sluice_requests_total has no label cod",
		`sum by (key) (sluice_requests_total)`:                                           "grouped by a label that no metric has: key",
		`sum(rate(sluice_requests_total[5m])`:                                            "unbalanced ()",
		`sluice_tunnels{api}`:                                                            "no matcher: api",
	} {
		if got := strings.Join(k.problems(expr), "; "); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

func TestTheDashboardUsesMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../gateway/observe/dashboards/sluice.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	k, ids := knownMetrics(t), make(map[int]bool)
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: its id is used twice, or it shows nothing", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			for _, problem := range k.problems(target.Expr) {
				t.Errorf("%s: %s", p.Title, problem)
			}
		}
	}
	if len(ids) < 20 {
		t.Errorf("only %d panels", len(ids))
	}
}

// mentionForm finds metrics in guides: a name, its beginning, or alternatives of grep.
var mentionForm = regexp.MustCompile(`\bsluice_(\w*)(?:\(([\w|]+)\)(\w*))?`)

func TestTheManualNamesMetricsThatExist(t *testing.T) {
	k, seen := knownMetrics(t), 0
	for _, page := range []string{"alerts.md", "monitoring.md"} {
		text, err := os.ReadFile("../docs/operations/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mentionForm.FindAllStringSubmatch(string(text), -1) {
			for one := range strings.SplitSeq(m[2], "|") {
				seen++
				begins := func(name string) bool { return strings.HasPrefix(name, "sluice_"+m[1]+one+m[3]) }
				if !slices.ContainsFunc(slices.Collect(maps.Keys(k)), begins) {
					t.Errorf("%s: there is no metric %s", page, m[0])
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d metrics were found", seen)
	}
}

func TestAlertsUseMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../gateway/observe/dashboards/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	help, err := os.ReadFile("../docs/operations/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Record, Alert, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	k, alerts, expressions := knownMetrics(t), 0, make(map[string]string)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			expressions[r.Alert] = r.Expr
			for _, problem := range k.problems(r.Expr) {
				t.Errorf("%s%s: %s", r.Record, r.Alert, problem)
			}
			if r.Record != "" {
				k[r.Record] = labelSet("")
				continue
			}
			alerts++
			if s := r.Labels["severity"]; s != "page" && s != "ticket" || r.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, summary %q", r.Alert, s, r.Annotations["summary"])
			}
			if r.Annotations["runbook"] != "internal/docs/operations/alerts.md#"+strings.ToLower(r.Alert) || !strings.Contains(string(help), "\n## "+r.Alert+"\n") {
				t.Errorf("%s: alerts.md has no section for it", r.Alert)
			}
		}
	}
	if alerts != strings.Count(string(help), "\n## ") {
		t.Errorf("%d alerts, but alerts.md has %d sections", alerts, strings.Count(string(help), "\n## "))
	}
	checkTargets(t, expressions)
}

// Each target of the jobs that this repository describes is watched by one of the alerts.
func checkTargets(t *testing.T, expressions map[string]string) {
	t.Helper()
	alertsOf := func(job string) (names []string) {
		for name, expr := range expressions {
			if m := targetForm.FindStringSubmatch(expr); m != nil && regexp.MustCompile("^(?:"+m[1]+")$").MatchString(job) && (m[2] == "" || !regexp.MustCompile("^(?:"+m[2]+")$").MatchString(job)) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	jobs := map[string]string{"sluice": "SluiceGatewayDown", "team-sluice-admin": "SluiceAdminDown", "postgres": "", "admin": ""}
	for _, path := range []string{"../deploy/compose/prometheus.yml", "../docs/operations/monitoring.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := jobForm.FindAllStringSubmatch(string(text), -1)
		if len(found) != 2 {
			t.Errorf("%s has %d jobs, want gateways and admin", path, len(found))
		}
		for _, m := range found {
			jobs[m[1]] = map[bool]string{true: "SluiceAdminDown", false: "SluiceGatewayDown"}[strings.HasSuffix(m[1], "admin")]
		}
	}
	for job, want := range jobs {
		var all []string
		if want != "" {
			all = []string{want, "SluiceNotScraped"}
			slices.Sort(all)
		}
		if got := alertsOf(job); !slices.Equal(got, all) {
			t.Errorf("targets of job %s are watched by %v, want %v", job, got, all)
		}
	}
}

var (
	targetForm = regexp.MustCompile(`\bup\{job=~"([^"]*)"(?:,job!~"([^"]*)")?\}`)
	jobForm    = regexp.MustCompile(`job_name: (\S+)`)
)
