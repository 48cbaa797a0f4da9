{{/* Name of the objects. 40 characters leave room for what is added. */}}
{{- define "sluice.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "sluice" $name) }}{{ $name = printf "%s-sluice" $name }}{{ end -}}
{{- default $name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels that select the pods of a component. Takes a list: root, component. */}}
{{- define "sluice.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of an object. Takes a list: root, component. */}}
{{- define "sluice.labels" -}}
{{- $root := index . 0 -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "sluice.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* Host by which gateways and Prometheus call the admin. */}}
{{- define "sluice.adminHost" -}}
{{ include "sluice.fullname" . }}-admin.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Environment variable of a setting. */}}
{{- define "sluice.variable" -}}
SLUICE_{{ . | replace "." "_" | upper }}
{{- end }}

{{/*
The variables of the settings of a component. Takes a dictionary: root, component, chart (settings
that the chart sets), reserved (settings that must not be given though the chart does not set them).
*/}}
{{- define "sluice.settings" -}}
{{- $component := .component -}}
{{- $given := index .root.Values .component "settings" -}}
{{- $secrets := .root.Files.Lines "files/secret-settings.txt" -}}
{{- range $key, $value := $given -}}
{{- if has $key $secrets }}{{ fail (printf "%s.settings: %s is a secret: name the Secret that holds it in %s.secrets" $component $key $component) }}{{ end -}}
{{- if or (hasKey $.chart $key) (has $key $.reserved) }}{{ fail (printf "%s.settings: the chart sets %s by its own values, or does not support it" $component $key) }}{{ end -}}
{{- end -}}
{{- range $key, $ref := index .root.Values .component "secrets" -}}
{{- if not (has $key $secrets) }}{{ fail (printf "%s.secrets: %s is no secret: set it in %s.settings" $component $key $component) }}{{ end -}}
{{- end -}}
{{- range $key, $value := merge (dict) $given .chart -}}
{{- if kindIs "slice" $value }}{{ $value = join "," $value }}{{ end -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $value = int64 $value }}{{ end }}
{{ include "sluice.variable" $key }}: {{ $value | toString | quote }}
{{- end -}}
{{- end }}

{{/* Variables that name the files of secret settings. Takes a map from setting to Secret. */}}
{{- define "sluice.secretVariables" -}}
{{- range $key, $ref := . }}
- name: {{ include "sluice.variable" $key }}_FILE
  value: /etc/sluice/secrets/{{ $key }}
{{- end -}}
{{- end }}

{{/* The volume with these files. */}}
{{- define "sluice.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $key, $ref := . }}
      - secret:
          name: {{ $ref.secret }}
          items: [{key: {{ $ref.key }}, path: {{ $key }}}]
      {{- end }}
{{- end }}

{{- define "sluice.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Where pods run, and by which image. Takes a list: root, values of the component. */}}
{{- define "sluice.placement" -}}
{{- $root := index . 0 -}}
{{- $values := index . 1 -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- range $member := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $values $member }}
{{ $member }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
What a probe of the admin does. Takes a list: root, live or ready. Kubernetes presents no client
certificate: where the admin requires one, the program calls itself.
*/}}
{{- define "sluice.adminProbe" -}}
{{- $values := (index . 0).Values.admin -}}
{{- if $values.tls.clients.secret -}}
exec: {command: [/sluice, doctor, --{{ index . 1 }}, --quiet]}
{{- else -}}
httpGet: {path: /{{ index . 1 }}, port: admin, scheme: {{ ternary "HTTPS" "HTTP" (ne $values.tls.secret "") }}}
{{- end -}}
{{- end }}
