{{- define "backlog-adapter.name" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $name := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- .Values.fullnameOverride | default $name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "backlog-adapter.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "backlog-adapter.labels" -}}
{{ include "backlog-adapter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Of a list of the root context, a name and, optionally, annotations: the metadata of an object. The labels are last,
so that a template can add some. */}}
{{- define "backlog-adapter.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
{{- with merge (dict) (index (append . dict) 2) $root.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
labels: {{- include "backlog-adapter.labels" $root | nindent 2 }}
{{- end }}

{{/* The versions of the metrics APIs. api: the key of values.apiService that switches it. priority: the highest is the
preferred version of a group. */}}
{{- define "backlog-adapter.apiVersions" -}}
- {api: external, group: external.metrics.k8s.io, version: v1beta1, priority: 100}
- {api: custom, group: custom.metrics.k8s.io, version: v1beta1, priority: 100}
- {api: custom, group: custom.metrics.k8s.io, version: v1beta2, priority: 200}
{{- end }}

{{- define "backlog-adapter.serveSecret" -}}
{{ .Values.tls.serve.existingSecret | default (printf "%s-tls" (include "backlog-adapter.name" .)) }}
{{- end }}

{{- define "backlog-adapter.pipelineSecret" -}}
{{ .Values.tls.pipeline.existingSecret | default (printf "%s-pipeline-tls" (include "backlog-adapter.name" .)) }}
{{- end }}

{{/* Of a list of the root context, a Secret and a Service: the Secret's data, from the cluster or, when it is new, made
here with a CA of its own. */}}
{{- define "backlog-adapter.certificate" -}}
{{- $root := index . 0 -}}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace (index . 1) -}}
{{- if $found -}}
{{- toYaml $found.data -}}
{{- else -}}
{{- $host := printf "%s.%s.svc" (index . 2) $root.Release.Namespace -}}
{{- $ca := genCA (printf "%s-ca" (index . 2)) 3650 -}}
{{- $leaf := genSignedCert $host nil (list $host) 3650 $ca -}}
{{- toYaml (dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($leaf.Cert | b64enc) "tls.key" ($leaf.Key | b64enc)) -}}
{{- end -}}
{{- end }}

{{- define "backlog-adapter.tokenSecret" -}}
{{ .Values.token.existingSecret | default (printf "%s-token" (include "backlog-adapter.name" .)) }}
{{- end }}

{{/* The user's configuration, and over it what only the chart knows. */}}
{{- define "backlog-adapter.config" -}}
{{- $name := include "backlog-adapter.name" . -}}
{{- $mounts := "/run/secrets/backlog-adapter" -}}
{{- $tls := dict "cert_file" (printf "%s/tls/tls.crt" $mounts) "key_file" (printf "%s/tls/tls.key" $mounts) -}}
{{- $token := printf "%s/token/token" $mounts -}}
{{- $pipeline := merge (dict "checkpoint" "/var/lib/backlog-adapter/checkpoint" "port" 8443 "token_file" $token) $tls -}}
{{- $url := printf "https://%s-pipeline.%s.svc:8443" $name .Release.Namespace -}}
{{- $serving := merge (dict "port" (int .Values.serve.port) "snapshot_url" $url "snapshot_token_file" $token) $tls -}}
{{- $_ := set $serving "snapshot_ca_file" (printf "%s/pipeline-ca/ca.crt" $mounts) -}}
{{- $_ := set $serving "service" (printf "%s/%s" .Release.Namespace $name) -}}
{{- with include "backlog-adapter.metricsPort" . }}{{ $_ := set $serving "metrics_port" (int .) }}{{ end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) (dict "pipeline" $pipeline "serving" $serving)) -}}
{{- end }}

{{- define "backlog-adapter.mounts" -}}
- {name: config, mountPath: /etc/backlog-adapter, readOnly: true}
- {name: tls, mountPath: /run/secrets/backlog-adapter/tls, readOnly: true}
- {name: token, mountPath: /run/secrets/backlog-adapter/token, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "backlog-adapter.volumes" -}}
- name: config
  configMap: {name: {{ include "backlog-adapter.name" . }}}
- name: token
  secret: {secretName: {{ include "backlog-adapter.tokenSecret" . }}, defaultMode: 0440}
- name: tmp
  emptyDir: {}
{{- end }}
