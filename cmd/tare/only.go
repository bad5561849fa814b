package main

import "tare/record"

// onlyHelp is what --only takes, in all verbs that have it.
const onlyHelp = "FACTOR=LEVEL,...; several levels of one factor are alternatives, several factors must all match"

// onlyLevels reads the values of --only, which may be repeated.
func onlyLevels(values []string) ([]record.Level, error) {
	var out []record.Level
	for _, v := range values {
		pairs := record.Labels(v).Pairs() // levels are escaped as labels are
		if len(pairs) == 0 {
			return nil, coded(exitUsage, "--only is empty; write FACTOR=LEVEL,... such as sandbox=runc")
		}
		for _, p := range pairs {
			if p[0] == "" || p[1] == "" {
				return nil, coded(exitUsage, "cannot read --only %s; write FACTOR=LEVEL,... such as workload=rr,sandbox=runc", v)
			}
			out = append(out, record.Level{Factor: p[0], Value: p[1]})
		}
	}
	return out, nil
}
