{{/* The parts that the pods of both roles share. Each is of a list of the root context and the name of a role. */}}

{{- define "backlog-adapter.roleSelector" -}}
{{ include "backlog-adapter.selector" (first .) }}
app.kubernetes.io/component: {{ last . }}
{{- end }}

{{- define "backlog-adapter.roleName" -}}
{{ include "backlog-adapter.name" (first .) }}{{ eq (last .) "pipeline" | ternary "-pipeline" "" }}
{{- end }}

{{- define "backlog-adapter.serviceAccount" -}}
{{- $account := (index (first .).Values (last .)).serviceAccount -}}
{{- if not (or $account.name $account.create) -}}
{{- fail (printf "%s.serviceAccount.name is required without %s.serviceAccount.create: an account of its own, because other pods use default" (last .) (last .)) -}}
{{- end -}}
{{- $name := $account.name | default (include "backlog-adapter.roleName" .) -}}
{{- $role := eq (last .) "serve" | ternary "pipeline" "serve" -}}
{{- $other := (index (first .).Values $role).serviceAccount -}}
{{- if eq $name ($other.name | default (include "backlog-adapter.roleName" (list (first .) $role))) -}}
{{- if include "backlog-adapter.ownSecrets" (first .) | fromYamlArray -}}
{{- fail (printf "serve and pipeline have one service account, %s: name two, because only serve may read and write the Secrets that it makes" $name) -}}
{{- else if and $account.create $other.create -}}
{{- fail (printf "serve and pipeline have one service account, %s: set pipeline.serviceAccount.create to false, or name two, because the chart cannot create it twice" $name) -}}
{{- end -}}
{{- end -}}
{{ $name }}
{{- end }}

{{- define "backlog-adapter.image" -}}
{{- $images := (first .).Values.images -}}
{{- $name := list $images.registry (index $images (last .)) | compact | join "/" | replace "//" "/" -}}
{{- with index $images.digests (last .) -}}
{{ $name }}@{{ . }}
{{- else -}}
{{ $name }}:{{ $images.tag | default (first .).Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* What a role reads of the configuration. `explain` in the pod of the pipeline reads `serving` too, at each call. */}}
{{- define "backlog-adapter.roleConfig" -}}
{{- $config := include "backlog-adapter.config" (first .) | fromYaml -}}
{{ eq (last .) "serve" | ternary (pick $config "serving") (omit $config "serving") | toYaml }}
{{- end }}

{{/* The checksum replaces the pods of a role when its configuration changes. A new server has no snapshot while the
pipeline restarts, so no other change may replace the servers. */}}
{{- define "backlog-adapter.podMetadata" -}}
{{- $role := index (first .).Values (last .) -}}
labels:
  {{- include "backlog-adapter.roleSelector" . | nindent 2 }}
  {{- with merge (dict) $role.podLabels (first .).Values.commonLabels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations:
  checksum/config: {{ include "backlog-adapter.roleConfig" . | sha256sum }}
  {{- with merge (dict) $role.podAnnotations (first .).Values.commonAnnotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{/* The fields of a pod's spec that values set. */}}
{{- define "backlog-adapter.podSpec" -}}
{{- $values := (first .).Values -}}
{{- $role := index $values (last .) -}}
serviceAccountName: {{ include "backlog-adapter.serviceAccount" . | quote }}
terminationGracePeriodSeconds: {{ $role.terminationGracePeriodSeconds }}
securityContext: {{- toYaml $values.podSecurityContext | nindent 2 }}
{{- range $field := list "priorityClassName" "nodeSelector" "tolerations" "affinity" }}
{{- with index $role $field }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with include "backlog-adapter.pullSecrets" (first .) }}{{ . | nindent 0 }}{{ end }}
{{- end }}

{{- define "backlog-adapter.pullSecrets" -}}
{{- with .Values.images.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "backlog-adapter.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The fields of a container that values set. A role has no right that a shell would need. */}}
{{- define "backlog-adapter.container" -}}
{{- $values := (first .).Values -}}
{{- $role := index $values (last .) -}}
name: {{ last . }}
image: {{ include "backlog-adapter.image" . | quote }}
imagePullPolicy: {{ $values.images.pullPolicy }}
args: [{{ last . }}, --config, /etc/backlog-adapter/config.yaml]
{{- range $probe, $path := dict "startupProbe" "/livez" "readinessProbe" "/readyz" "livenessProbe" "/livez" }}
{{ $probe }}:
  httpGet: {path: {{ $path }}, port: https, scheme: HTTPS}
  {{- with index $role $probe }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
resources: {{- toYaml $role.resources | nindent 2 }}
securityContext: {{- include "backlog-adapter.containerSecurity" . | nindent 2 }}
{{- with $role.extraEnv }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $role.extraEnvFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
