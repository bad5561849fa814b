package sysnames

import _ "embed"

//go:embed table_amd64.txt
var table string
