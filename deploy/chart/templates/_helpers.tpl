{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The recommended labels of an object: list $ COMPONENT, which is controller or plugin. */}}
{{- define "drarun.labels" -}}
{{- $root := index . 0 }}
{{- $chart := dict "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") }}
{{- $version := dict "app.kubernetes.io/version" ($root.Chart.AppVersion | replace "+" "_") }}
{{- $service := dict "app.kubernetes.io/managed-by" $root.Release.Service }}
{{- toYaml (merge $chart $version $service (include "drarun.stableLabels" . | fromYaml)) }}
{{- end }}

{{/* Those of them that an upgrade does not change, which a pod's template may have: list $ COMPONENT. */}}
{{- define "drarun.stableLabels" -}}
{{- $root := index . 0 }}
{{- $component := index . 1 }}
{{- $own := dict "app.kubernetes.io/name" (print "drarun-" $component) "app.kubernetes.io/component" $component }}
{{- $release := dict "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/part-of" "drarun" }}
{{- toYaml (merge $own $release $root.Values.commonLabels) }}
{{- end }}

{{/* The labels of a component's pods: list $ COMPONENT. */}}
{{- define "drarun.podLabels" -}}
{{- $component := index (index . 0).Values (index . 1) }}
{{- toYaml (merge (include "drarun.stableLabels" . | fromYaml) $component.podLabels) }}
{{- end }}

{{/* The name of an image: list $ IMAGE. */}}
{{- define "drarun.image" -}}
{{- $root := index . 0 }}
{{- with index . 1 }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The node plugin's image. */}}
{{- define "drarun.pluginImage" -}}
{{- $own := .Values.plugin.image }}
{{- if and (not $own.repository) (or $own.tag $own.digest) }}
{{- fail "plugin.image.tag and plugin.image.digest are of plugin.image.repository, which is empty: give it, or set image.tag or image.digest for both" }}
{{- end }}
{{- include "drarun.image" (list . (ternary $own .Values.image (not (empty $own.repository)))) }}
{{- end }}

{{/* The node plugin's configuration file. */}}
{{- define "drarun.pluginConfig" -}}
apiVersion: drarun.dev/v1alpha1
kind: PluginConfig
{{- with .Values.plugin.config }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What of a pod's specification both components have: list $ COMPONENT. */}}
{{- define "drarun.podSpec" -}}
{{- $root := index . 0 }}
{{- with index $root.Values (index . 1) }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ if kindIs "string" . }}{{ quote . }}{{ else }}{{ quote .name }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
