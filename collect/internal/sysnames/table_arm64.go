package sysnames

import _ "embed"

//go:embed table_arm64.txt
var table string
