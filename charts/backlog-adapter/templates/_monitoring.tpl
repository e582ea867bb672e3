{{/* The plain port of the metrics of serve: that of the configuration, or 8080 where a monitor needs one. Empty without
one; on the port of the API, /metrics needs a credential of the cluster and the right to get /metrics. */}}
{{- define "backlog-adapter.metricsPort" -}}
{{- $monitored := or .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- $port := dig "serving" "metrics_port" 0 .Values.config | default (ternary 8080 0 $monitored) | int -}}
{{- if has $port (list 443 (int .Values.serve.port)) -}}
{{- fail (printf "the metrics of serve would have port %d, which the API has: set config.serving.metrics_port to a port other than 443 and serve.port" $port) -}}
{{- end -}}
{{ $port | default "" }}
{{- end }}

{{/* Of a list of the root context, the name of a role and the values of a monitor: how Prometheus reads its metrics.
The metrics of the pipeline name workloads with the labels `namespace` and `workload`, so they need the token, and keep
those labels. */}}
{{- define "backlog-adapter.endpoint" -}}
{{- $root := index . 0 -}}
{{- $monitor := index . 2 -}}
{{- if eq (index . 1) "pipeline" -}}
port: https
scheme: https
honorLabels: true
authorization:
  credentials: {name: {{ include "backlog-adapter.tokenSecret" $root | quote }}, key: token}
tlsConfig:
  ca:
    secret: {name: {{ include "backlog-adapter.pipelineSecret" $root | quote }}, key: ca.crt}
  serverName: {{ include "backlog-adapter.name" $root }}-pipeline.{{ $root.Release.Namespace }}.svc
{{- else -}}
port: metrics
{{- end }}
{{- with $monitor.interval }}
interval: {{ . }}
{{- end }}
{{- with $monitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with $monitor.relabelings }}
relabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $monitor.metricRelabelings }}
metricRelabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of a list of the root context, a kind, the values of the monitor and the field of its endpoints: one monitor a role. */}}
{{- define "backlog-adapter.monitors" -}}
{{- $root := index . 0 -}}
{{- $monitor := index . 2 -}}
{{- range $role := list "serve" "pipeline" }}
---
apiVersion: monitoring.coreos.com/v1
kind: {{ index $ 1 }}
metadata:
  {{- include "backlog-adapter.metadata" (list $root (include "backlog-adapter.roleName" (list $root $role)) dict $monitor.additionalLabels) | nindent 2 }}
spec:
  selector:
    matchLabels: {{- include "backlog-adapter.roleSelector" (list $root $role) | nindent 6 }}
  {{ index $ 3 }}:
    - {{ include "backlog-adapter.endpoint" (list $root $role $monitor) | indent 6 | trim }}
{{- end }}
{{- end }}
