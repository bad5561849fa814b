{{- define "variables" -}}
{{- range $i := until $.n }}
{{- printf "- name: V%d\n  value: %s" (add $i 1) (quote $.value) | nindent $.indent }}
{{- end }}
{{- end }}
