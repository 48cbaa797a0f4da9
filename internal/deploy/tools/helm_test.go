package tools

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../helm"

var update = flag.Bool("update", false, "write what the chart renders into its testdata")

// kinds are the types of the objects that the chart may render.
var kinds = map[string]func() any{
	"v1/ConfigMap":                            func() any { return new(core.ConfigMap) },
	"v1/Service":                              func() any { return new(core.Service) },
	"apps/v1/Deployment":                      func() any { return new(apps.Deployment) },
	"autoscaling/v2/HorizontalPodAutoscaler":  func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"batch/v1/Job":                            func() any { return new(batch.Job) },
	"monitoring.coreos.com/v1/PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
	"monitoring.coreos.com/v1/ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
	"networking.k8s.io/v1/Ingress":            func() any { return new(networking.Ingress) },
	"networking.k8s.io/v1/NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"policy/v1/PodDisruptionBudget":           func() any { return new(policy.PodDisruptionBudget) },
}

// rendered are the objects of a chart, by kind and name: Service/sluice-admin.
type rendered map[string]any

// object returns the object of type T with that name.
func object[T any](t *testing.T, all rendered, name string) *T {
	t.Helper()
	found, ok := all[name].(*T)
	if !ok {
		t.Fatalf("there is no %s; there are %v", name, slices.Sorted(maps.Keys(all)))
	}
	return found
}

// render returns the objects as the YAML that is applied, and NOTES.txt.
func render(values map[string]any) (objects, notes string, err error) {
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return "", "", err
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = chartutil.KubeVersion{Version: "v1.27.0", Major: "1", Minor: "27"}
	release := chartutil.ReleaseOptions{Name: "sluice", Namespace: "gateways", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(chart, values, release, caps, false)
	if err != nil {
		return "", "", err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.Trim(strings.TrimSpace(files[name]), "-\n")
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = text
		case text != "":
			fmt.Fprintf(&b, "---\n# %s\n%s\n", strings.TrimPrefix(name, "sluice/"), strings.TrimSpace(text))
		}
	}
	return b.String(), notes, nil
}

// decode reads objects strictly: unknown and duplicate members are errors.
func decode(t *testing.T, text string) rendered {
	t.Helper()
	all := make(rendered)
	for one := range strings.SplitSeq(text, "\n---\n") {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(one), &head); err != nil {
			t.Fatalf("%v in\n%s", err, one)
		}
		create := kinds[head.APIVersion+"/"+head.Kind]
		if create == nil {
			t.Fatalf("%s %s is not expected:\n%s", head.APIVersion, head.Kind, one)
		}
		into := create()
		if err := yaml.UnmarshalStrict([]byte(one), into); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		name := head.Kind + "/" + head.Metadata.Name
		if all[name] != nil {
			t.Errorf("%s is rendered twice", name)
		}
		all[name] = into
	}
	return all
}

// valuesOf returns the values of a case; "defaults" has none.
func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	if name == "defaults" {
		return map[string]any{}
	}
	values, err := chartutil.ReadValuesFile(filepath.Join(chartDir, "testdata", name+".values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// What the chart renders is what its testdata has, is of Kubernetes' types, and keeps what
// matters. Package helm loads the settings in it.
func TestTheChartRendersObjectsOfKubernetes(t *testing.T) {
	for _, name := range []string{"defaults", "minimal", "everything"} {
		t.Run(name, func(t *testing.T) {
			values := valuesOf(t, name)
			text, notes, err := render(values)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join(chartDir, "testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("the chart does not render %s: go -C internal/deploy/tools test -run Chart . -update", golden)
			}
			full, ok := values["fullnameOverride"].(string)
			if !ok {
				full = "sluice"
			}
			if !strings.Contains(notes, "deploy/"+full+"-admin -- /sluice user enter") {
				t.Errorf("the notes do not say how the first user signs in:\n%s", notes)
			}
			all := decode(t, text)
			checkPods(t, all)
			checkProbes(t, all, full)
			checkGateways(t, all, full)
			checkServices(t, all)
			checkNetwork(t, all, full)
			checkClientCertificates(t, all, full)
			if values["prometheusRule"] != nil && len(object[monitoring.PrometheusRule](t, all, "PrometheusRule/"+full).Spec.Groups) != 2 {
				t.Error("the alerts are not there")
			}
			for _, message := range lint.AllWithKubeVersion(chartDir, values, "gateways", &chartutil.KubeVersion{Version: "v1.27.0", Major: "1", Minor: "27"}).Messages {
				if message.Severity > support.InfoSev {
					t.Errorf("lint: %v", message)
				}
			}
		})
	}
}

// The sum of the chart's sources, by which package helm knows whether the rendered files are of
// this chart, is up to date.
func TestTheSumOfTheChartIsKept(t *testing.T) {
	sources, err := filepath.Glob(chartDir + "/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	values, err := filepath.Glob(chartDir + "/testdata/*.values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Chart.yaml", "files/rules.yml", "files/secret-settings.txt", "values.yaml"} {
		sources = append(sources, filepath.Join(chartDir, name))
	}
	sum := sha256.New()
	for _, path := range append(sources, values...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", strings.TrimPrefix(path, chartDir+"/"), len(text), text)
	}
	kept, got := filepath.Join(chartDir, "testdata/chart.sha256"), fmt.Sprintf("%x\n", sum.Sum(nil))
	if *update {
		if err := os.WriteFile(kept, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != got {
		t.Errorf("%s: %q, %v, and the sum is %s", kept, text, err, got)
	}
}

// podsOf returns the pods of workloads.
func podsOf(all rendered) map[string]core.PodTemplateSpec {
	pods := make(map[string]core.PodTemplateSpec)
	for name, one := range all {
		switch one := one.(type) {
		case *apps.Deployment:
			pods[name] = one.Spec.Template
		case *batch.Job:
			pods[name] = one.Spec.Template
		}
	}
	return pods
}

// Pods run without privileges, and have secrets by reference alone.
func checkPods(t *testing.T, all rendered) {
	t.Helper()
	for name, pod := range podsOf(all) {
		spec := pod.Spec
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s has the token of a service account", name)
		}
		if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s may run as root, or without the profile of system calls: %+v", name, s)
		}
		for _, c := range spec.Containers {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
				t.Errorf("%s: the container %s has privileges: %+v", name, c.Name, s)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: the container %s has no request of CPU, or no limit of memory", name, c.Name)
			}
			for _, v := range c.Env {
				if !strings.HasSuffix(v.Name, "_FILE") || !strings.HasPrefix(v.Value, "/etc/sluice/secrets/") {
					t.Errorf("%s: %s is %q, and not the file of a secret", name, v.Name, v.Value)
				}
			}
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s: there is no volume %s", name, m.Name)
				}
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "Secret/") {
			t.Errorf("%s is rendered; secrets are referred to only", name)
		}
	}
}

// checkProbes checks the paths that admin and gateway answer, and the time for a stop.
func checkProbes(t *testing.T, all rendered, full string) {
	t.Helper()
	settings := func(component string) map[string]string {
		return object[core.ConfigMap](t, all, "ConfigMap/"+full+"-"+component).Data
	}
	for _, want := range []struct {
		component, port           string
		startup, liveness, ready  string
		scheme                    core.URIScheme
		listen, drain, drainDelay string
	}{
		{"admin", "admin", "/ready", "/live", "/live", schemeOf(settings("admin")["SLUICE_ADMIN_TLS_CERT"]), "SLUICE_ADMIN_LISTEN", "SLUICE_GATEWAY_DRAIN_TIMEOUT", ""},
		{"gateway", "telemetry", "/live", "/live", "/ready", "", "SLUICE_TELEMETRY_LISTEN", "SLUICE_GATEWAY_DRAIN_TIMEOUT", "SLUICE_GATEWAY_DRAIN_DELAY"},
	} {
		pod := object[apps.Deployment](t, all, "Deployment/"+full+"-"+want.component).Spec.Template.Spec
		c := pod.Containers[0]
		for path, probe := range map[string]*core.Probe{"startup " + want.startup: c.StartupProbe, "liveness " + want.liveness: c.LivenessProbe, "readiness " + want.ready: c.ReadinessProbe} {
			_, wantPath, _ := strings.Cut(path, " ")
			if probe != nil && probe.Exec != nil && settings(want.component)["SLUICE_ADMIN_TLS_CLIENT_CA"] != "" {
				if command := strings.Join(probe.Exec.Command, " "); command != "/sluice doctor --"+wantPath[1:]+" --quiet" {
					t.Errorf("%s: probe of %s runs %s", want.component, path, command)
				}
				continue
			}
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != wantPath || probe.HTTPGet.Port.StrVal != want.port || probe.HTTPGet.Scheme != want.scheme {
				t.Errorf("%s: probe of %s at %s: %+v", want.component, path, want.port, probe)
			}
		}
		port := slices.IndexFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == want.port })
		if port < 0 || settings(want.component)[want.listen] != fmt.Sprintf(":%d", c.Ports[port].ContainerPort) {
			t.Errorf("%s: the port %s is not that of %s", want.component, want.port, want.listen)
		}
		stop := 0
		for _, name := range []string{want.drain, want.drainDelay} {
			seconds := 0
			if _, err := fmt.Sscanf(settings(want.component)[name], "%ds", &seconds); name != "" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			stop += seconds
		}
		if grace := orZero(pod.TerminationGracePeriodSeconds); grace < int64(stop+30) {
			t.Errorf("%s is killed after %d s; a stop takes up to %d s and about 30 s", want.component, grace, stop)
		}
	}
}

// orZero returns what p points to, or 0.
func orZero[T int32 | int64](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

// schemeOf returns how probes call a server with that certificate.
func schemeOf(cert string) core.URIScheme {
	if cert == "" {
		return core.URISchemeHTTP
	}
	return core.URISchemeHTTPS
}

// checkGateways checks that there are two gateways at least, also during disruptions.
func checkGateways(t *testing.T, all rendered, full string) {
	t.Helper()
	name := full + "-gateway"
	gateway := object[apps.Deployment](t, all, "Deployment/"+name)
	labels := gateway.Spec.Template.Labels
	if scaled, ok := all["HorizontalPodAutoscaler/"+name].(*autoscaling.HorizontalPodAutoscaler); ok {
		target := scaled.Spec.ScaleTargetRef
		if target.Kind != "Deployment" || target.Name != gateway.Name || target.APIVersion != "apps/v1" || gateway.Spec.Replicas != nil {
			t.Errorf("the autoscaler has the target %+v, which has %d replicas of its own", target, orZero(gateway.Spec.Replicas))
		}
		if least := orZero(scaled.Spec.MinReplicas); least < 2 || scaled.Spec.MaxReplicas < least {
			t.Errorf("the autoscaler wants %d to %d gateways", least, scaled.Spec.MaxReplicas)
		}
	} else if n := orZero(gateway.Spec.Replicas); n < 2 {
		t.Errorf("%d gateways", n)
	}
	budget := object[policy.PodDisruptionBudget](t, all, "PodDisruptionBudget/"+name)
	if !selects(budget.Spec.Selector.MatchLabels, labels) || budget.Spec.MaxUnavailable == nil {
		t.Errorf("the budget selects %v and allows %v", budget.Spec.Selector, budget.Spec.MaxUnavailable)
	}
	spread := gateway.Spec.Template.Spec.TopologySpreadConstraints
	if len(spread) == 0 {
		t.Error("gateways may run on one node")
	}
	for _, one := range spread {
		if !selects(one.LabelSelector.MatchLabels, labels) {
			t.Errorf("gateways are spread by %v", one.LabelSelector)
		}
	}
}

// selects reports whether a selector that is not empty matches labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// Services lead to ports that pods of one kind have, and what names a Service finds it.
func checkServices(t *testing.T, all rendered) {
	t.Helper()
	services := make(map[string]*core.Service)
	for _, one := range all {
		if service, ok := one.(*core.Service); ok {
			services[service.Name] = service
		}
	}
	pods := podsOf(all)
	for name, service := range services {
		matched := 0
		for _, pod := range pods {
			if !selects(service.Spec.Selector, pod.Labels) {
				continue
			}
			matched++
			for _, port := range service.Spec.Ports {
				if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }) {
					t.Errorf("%s: pods have no port %s", name, port.TargetPort.StrVal)
				}
			}
		}
		if matched != 1 {
			t.Errorf("%s selects pods of %d workloads", name, matched)
		}
	}
	hasPort := func(service *core.Service, port string) bool {
		return service != nil && slices.ContainsFunc(service.Spec.Ports, func(p core.ServicePort) bool { return p.Name == port })
	}
	for name, one := range all {
		switch one := one.(type) {
		case *networking.Ingress:
			if backend := one.Spec.Rules[0].HTTP.Paths[0].Backend.Service; !hasPort(services[backend.Name], backend.Port.Name) {
				t.Errorf("%s: there is no %+v", name, backend)
			}
		case *monitoring.ServiceMonitor:
			found := slices.ContainsFunc(slices.Collect(maps.Values(services)), func(s *core.Service) bool {
				return selects(one.Spec.Selector.MatchLabels, s.Labels) && hasPort(s, one.Spec.Endpoints[0].Port)
			})
			if !found || one.Spec.Endpoints[0].Path != "/metrics" {
				t.Errorf("%s scrapes nothing: %+v", name, one.Spec)
			}
		}
	}
}

// checkNetwork checks that NetworkPolicies are of pods that exist and open ports that those
// have, and that gateways can call the admin.
func checkNetwork(t *testing.T, all rendered, full string) {
	t.Helper()
	pods, policies, calls := podsOf(all), 0, false
	gateways := pods["Deployment/"+full+"-gateway"].Labels
	for name, one := range all {
		policy, ok := one.(*networking.NetworkPolicy)
		if !ok {
			continue
		}
		policies++
		pod := pods["Deployment/"+policy.Name]
		if !selects(policy.Spec.PodSelector.MatchLabels, pod.Labels) || !slices.Equal(policy.Spec.PolicyTypes, []networking.PolicyType{networking.PolicyTypeIngress}) {
			t.Errorf("%s is of %+v", name, policy.Spec)
			continue
		}
		open := make(map[string]bool)
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open[port.Port.StrVal] = true
			}
			calls = calls || policy.Name == full+"-admin" && rule.Ports[0].Port.StrVal == "admin" && slices.ContainsFunc(rule.From, func(p networking.NetworkPolicyPeer) bool {
				return p.NamespaceSelector == nil && p.PodSelector != nil && selects(p.PodSelector.MatchLabels, gateways)
			})
		}
		for _, port := range pod.Spec.Containers[0].Ports {
			if !open[port.Name] {
				t.Errorf("%s opens %v, and not %s", name, slices.Sorted(maps.Keys(open)), port.Name)
			}
			delete(open, port.Name)
		}
		if len(open) > 0 {
			t.Errorf("%s opens ports that the pod has not: %v", name, open)
		}
	}
	if policies != 0 && (policies != 2 || !calls) {
		t.Errorf("%d policies, gateways can call the admin: %t", policies, calls)
	}
}

// checkClientCertificates checks that what calls an admin that requires client certificates
// has one, in a volume.
func checkClientCertificates(t *testing.T, all rendered, full string) {
	t.Helper()
	pods := podsOf(all)
	admin := object[core.ConfigMap](t, all, "ConfigMap/"+full+"-admin").Data
	gateway := object[core.ConfigMap](t, all, "ConfigMap/"+full+"-gateway").Data
	required := admin["SLUICE_ADMIN_TLS_CLIENT_CA"] != ""
	for _, one := range []struct{ component, path string }{
		{"admin", admin["SLUICE_ADMIN_TLS_CLIENT_CA"]},
		{"admin", admin["SLUICE_CLIENT_CERT"]},
		{"admin", admin["SLUICE_CLIENT_KEY"]},
		{"gateway", gateway["SLUICE_GATEWAY_ADMIN_CERT"]},
		{"gateway", gateway["SLUICE_GATEWAY_ADMIN_KEY"]},
	} {
		mounted := slices.ContainsFunc(pods["Deployment/"+full+"-"+one.component].Spec.Containers[0].VolumeMounts, func(m core.VolumeMount) bool {
			return m.MountPath == filepath.Dir(one.path)
		})
		if required != mounted {
			t.Errorf("%s: client certificates are required: %t; the file %q is mounted: %t", one.component, required, one.path, mounted)
		}
	}
	if monitor, ok := all["ServiceMonitor/"+full+"-admin"].(*monitoring.ServiceMonitor); ok {
		if own := monitor.Spec.Endpoints[0].TLSConfig; required != (own.Cert.Secret != nil && own.KeySecret != nil) {
			t.Errorf("client certificates are required: %t; Prometheus has %+v", required, own)
		}
	}
}

// Values that would not work are refused, with what is wrong.
func TestTheChartRefusesValues(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"gateway: {replicas: 1}", "minimum: got 1, want 2"},
		{"gateway: {autoscaling: {minReplicas: 1}}", "minimum: got 1, want 2"},
		{"gateway: {autoscaling: {minReplicas: 9, maxReplicas: 3}}", "gateway.autoscaling.maxReplicas is 3, less than minReplicas"},
		{"gateway: {replica: 3}", "additional properties 'replica' not allowed"},
		{"gateway: {settings: {gateway.listen: ':9090'}}", "gateway.settings: the chart sets gateway.listen"},
		{"gateway: {settings: {telemetry.tls.cert: a}}", "gateway.settings: the chart sets telemetry.tls.cert by its own values, or does not support it"},
		{"gateway: {settings: {gateway: {listen: ':9090'}}}", "/gateway/settings/gateway"},
		{"gateway: {settings: {telemetry.token: abc}}", "telemetry.token is a secret"},
		{"gateway: {secrets: {gateway.token: abc}}", "got string, want object"},
		{"gateway: {secrets: {gateway.token: {secret: a, key: b, value: c}}}", "additional properties 'value' not allowed"},
		{"gateway: {secrets: {log.level: {secret: a, key: b}}}", "gateway.secrets: log.level is no secret"},
		{"gateway: {secrets: {valkey.url: null}}", "missing property 'valkey.url'"},
		{"admin: {settings: {admin.tls.client_ca: a}}", "admin.settings: the chart sets admin.tls.client_ca"},
		{"admin: {settings: {database.url: 'postgres://u:p@h/d'}}", "database.url is a secret"},
		{"admin: {tls: {secret: ''}}", "admin.tls.secret is empty"},
		{"portal: {enabled: true}", "portal.tls.secret is empty"},
		{"portal: {ingress: {enabled: true, host: a.example}}", "portal.ingress needs portal.enabled"},
		{"gateway: {ingress: {enabled: true}}", "gateway.ingress.host: name the host"},
		{"admin: {replicas: 2, dataClaim: a}", "admin.dataClaim"},
		{"admin: {insecure: true, tls: {secret: '', clients: {secret: a}}}", "admin.tls.clients.secret needs admin.tls.secret"},
		{"gateway: {settings: {gateway.admin_cert: a}}", "gateway.settings: the chart sets gateway.admin_cert"},
		{"networkPolicy: {enabled: true, metricsFrom: [{podSelectors: {}}]}", "additional properties 'podSelectors' not allowed"},
		{"{networkPolicy: {enabled: true}, serviceMonitor: {enabled: true}}", "networkPolicy.metricsFrom is empty"},
		{"{networkPolicy: {enabled: true}, admin: {ingress: {enabled: true, host: a.example}}}", "networkPolicy.adminFrom is empty"},
	} {
		values, err := chartutil.ReadValues([]byte(c.values))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := render(values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, and not %q", c.values, err, c.want)
		}
	}
}
