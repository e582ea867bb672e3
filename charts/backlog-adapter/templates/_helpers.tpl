{{- define "backlog-adapter.name" -}}
{{- $chart := .Values.nameOverride | default .Chart.Name -}}
{{- $name := contains $chart .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $chart) -}}
{{- $full := .Values.fullnameOverride | default $name | trunc 50 | trimSuffix "-" -}}
{{- /* Since Kubernetes 1.36 the name of a Service may begin with a digit. */ -}}
{{- $begin := semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version | ternary "[a-z0-9]" "[a-z]" -}}
{{- if not (regexMatch (printf "^%s[a-z0-9-]*$" $begin) $full) -}}
{{- fail (printf "a Service cannot be named %s: set fullnameOverride to a name that begins with a letter and has no dots" $full) -}}
{{- end -}}
{{- $full -}}
{{- end }}

{{- define "backlog-adapter.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "backlog-adapter.labels" -}}
{{ include "backlog-adapter.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The beginning of the names of objects outside a namespace. A colon is in no namespace, so that no two releases share one. */}}
{{- define "backlog-adapter.clusterName" -}}
{{ .Release.Namespace }}:{{ include "backlog-adapter.name" . }}
{{- end }}

{{/* Of a list of the root context, a name and, optionally, annotations and labels: the metadata of an object. It names
the namespace for `kubectl apply`, which puts other objects into that of its context. */}}
{{- define "backlog-adapter.metadata" -}}
namespace: {{ (index . 0).Release.Namespace | quote }}
{{ include "backlog-adapter.clusterMetadata" . }}
{{- end }}

{{/* The same of an object outside the namespace of the release. */}}
{{- define "backlog-adapter.clusterMetadata" -}}
{{- $values := (index . 0).Values -}}
{{- $given := concat . (list dict dict) -}}
name: {{ index . 1 | quote }}
{{- with merge (dict) (index $given 2) $values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
labels: {{- include "backlog-adapter.labels" (index . 0) | fromYaml | merge (dict) (index $given 3) $values.commonLabels | toYaml | nindent 2 }}
{{- end }}

{{/* The versions of the metrics APIs. api: the key of values.apiService that switches it. priority: the highest is the
preferred version of a group. v1beta1 of custom.metrics.k8s.io is the one of prometheus-adapter: with it, helm refuses to
install beside that adapter. */}}
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

{{/* The APIs that this release registers: external, custom. */}}
{{- define "backlog-adapter.apis" -}}
{{- $apis := list -}}
{{- range list "external" "custom" }}{{ if (index $.Values.apiService .).create }}{{ $apis = append $apis . }}{{ end }}{{ end -}}
{{- toJson $apis -}}
{{- end }}

{{/* The API services of this release, by name. */}}
{{- define "backlog-adapter.apiServices" -}}
{{- $names := list -}}
{{- $apis := include "backlog-adapter.apis" . | fromJsonArray -}}
{{- range include "backlog-adapter.apiVersions" . | fromYamlArray -}}
{{- if has .api $apis }}{{ $names = append $names (printf "%s.%s" .version .group) }}{{ end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* The Secrets that serve writes. */}}
{{- define "backlog-adapter.ownSecrets" -}}
{{- if eq .Values.tls.mode "self" }}
- {{ include "backlog-adapter.serveSecret" . }}
- {{ include "backlog-adapter.pipelineSecret" . }}
{{- end }}
{{- if not .Values.token.existingSecret }}
- {{ include "backlog-adapter.tokenSecret" . }}
{{- end }}
{{- end }}

{{- define "backlog-adapter.tokenSecret" -}}
{{ .Values.token.existingSecret | default (printf "%s-token" (include "backlog-adapter.name" .)) }}
{{- end }}

{{/* The user's configuration, and over it what only the chart knows. serve reads mounted files, or those that it writes
itself. */}}
{{- define "backlog-adapter.config" -}}
{{- $name := include "backlog-adapter.name" . -}}
{{- $mounts := "/run/secrets/backlog-adapter" -}}
{{- $written := "/run/backlog-adapter" -}}
{{- $tls := dict "cert_file" (printf "%s/tls/tls.crt" $mounts) "key_file" (printf "%s/tls/tls.key" $mounts) -}}
{{- $token := printf "%s/token/token" $mounts -}}
{{- $pipeline := merge (dict "checkpoint" "/var/lib/backlog-adapter/checkpoint" "host" "::" "port" 8443 "token_file" $token) $tls -}}
{{- $url := printf "https://%s-pipeline.%s.svc:8443" $name .Release.Namespace -}}
{{- $serving := merge (dict "host" "::" "port" (int .Values.serve.port) "snapshot_url" $url "snapshot_token_file" $token) $tls -}}
{{- $_ := set $serving "snapshot_ca_file" (printf "%s/pipeline-ca/ca.crt" $mounts) -}}
{{- $_ := set $serving "service" (printf "%s/%s" .Release.Namespace $name) -}}
{{- $_ := set $serving "api_services" (include "backlog-adapter.apiServices" . | fromJsonArray) -}}
{{- with include "backlog-adapter.metricsPort" . }}{{ $_ := set $serving "metrics_port" (int .) }}{{ end -}}
{{- if eq .Values.tls.mode "self" -}}
{{- $secrets := dict "secret" (include "backlog-adapter.serveSecret" .) "pipeline_secret" (include "backlog-adapter.pipelineSecret" .) -}}
{{- $_ := set $serving "issuer" (merge (dict "lease" $name) $secrets) -}}
{{- range list "cert_file" "key_file" }}{{ $_ := set $serving . (printf "%s/tls.pem" $written) }}{{ end -}}
{{- $_ := set $serving "snapshot_ca_file" (printf "%s/ca.crt" $written) -}}
{{- end -}}
{{- if not .Values.token.existingSecret -}}
{{- $token := dict "lease" $name "token_secret" (include "backlog-adapter.tokenSecret" .) -}}
{{- $_ := set $serving "issuer" (merge (get $serving "issuer" | default dict) $token) -}}
{{- $_ := set $serving "snapshot_token_file" (printf "%s/token" $written) -}}
{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- /* The lifetimes of certificates have no meaning where serve makes nothing. */ -}}
{{- if not (hasKey $serving "issuer") }}{{ with $config.serving }}{{ $_ := unset . "issuer" }}{{ end }}{{ end -}}
{{- toYaml (mergeOverwrite $config (dict "pipeline" $pipeline "serving" $serving)) -}}
{{- end }}

{{- define "backlog-adapter.mounts" -}}
- {name: config, mountPath: /etc/backlog-adapter, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "backlog-adapter.volumes" -}}
- name: config
  configMap:
    name: {{ include "backlog-adapter.name" (first .) | quote }}
    items:
      - {key: {{ eq (last .) "serve" | ternary "serving" "config" }}.yaml, path: config.yaml}
- name: tmp
  emptyDir: {}
{{- end }}

{{/* Of a list of a volume's name, a Secret and keys: the volume. The kubelet starts the pod when all keys exist. */}}
{{- define "backlog-adapter.secretVolume" -}}
- name: {{ index . 0 }}
  secret:
    secretName: {{ index . 1 | quote }}
    defaultMode: 0440
    items:
      {{- range slice . 2 }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}

{{/* Refuses a limit without memory for Python and the JVM besides the heap. */}}
{{- define "backlog-adapter.checkHeap" -}}
{{- $units := dict "k" 1024.0 "m" 1048576.0 "g" 1073741824.0 "t" 1099511627776.0 -}}
{{- $limits := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- $heap := (.Values.config.pipeline | default dict).memory | default "1g" -}}
{{- $limit := ((.Values.pipeline.resources | default dict).limits | default dict).memory | default "" -}}
{{- $limit = kindIs "float64" $limit | ternary (int64 $limit) $limit | toString | trimPrefix "+" -}}
{{- with get $limits (regexFind "[A-Za-z]*$" $limit) -}}
{{- if and $limit (gt (addf 1073741824.0 (mulf (regexFind "^[0-9]+" $heap) (get $units (regexFind "[a-z]$" $heap)))) (mulf (regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $limit) .)) -}}
{{- fail (printf "pipeline.resources.limits.memory: expected at least config.pipeline.memory (%s) plus 1Gi for Python and the JVM itself, got %s; raise the limit, or lower config.pipeline.memory" $heap $limit) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Refuses a folder of pipeline.secretMounts that contains, or lies in, another folder that the pod uses. */}}
{{- define "backlog-adapter.checkSecretMounts" -}}
{{- $used := splitList " " "/tmp /etc/backlog-adapter /var/lib/backlog-adapter /run/backlog-adapter /run/secrets/backlog-adapter /run/secrets/kubernetes.io /var/run /opt/backlog-adapter /opt/java /usr /etc/ssl" -}}
{{- range $secret := keys .Values.pipeline.secretMounts | sortAlpha -}}
{{- $folder := index $.Values.pipeline.secretMounts $secret | trimSuffix "/" -}}
{{- range $other := $used -}}
{{- if or (hasPrefix (printf "%s/" $other) (printf "%s/" $folder)) (hasPrefix (printf "%s/" $folder) (printf "%s/" $other)) -}}
{{- fail (printf "pipeline.secretMounts.%s: %s contains or lies in %s, which the pod uses; choose another folder, such as /run/secrets/%s" $secret $folder $other $secret) -}}
{{- end -}}
{{- end -}}
{{- $used = append $used $folder -}}
{{- end -}}
{{- end }}
