{{- define "fixloop.labels" -}}
app.kubernetes.io/name: fixloop
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "fixloop.environment" -}}
- name: FIXLOOP_STATE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.secret }}, key: url}}
- {name: FIXLOOP_CACHE_DIR, value: /cache}
- {name: HOME, value: /tmp}
{{- if .Values.seal.secret }}
- {name: FIXLOOP_SEAL_KEY_FILE, value: /run/secrets/seal/seal.key}
{{- end }}
{{- end }}
{{- define "fixloop.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "fixloop.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}
