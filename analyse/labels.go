package analyse

import (
	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/record"
)

// LabelNames are the names of labels that Analyse looks at: it reads the samples
// without any label, and those that have one of these. Whoever loads trials for
// an analysis alone may leave the others out.
func LabelNames() []string {
	return []string{"collector", record.LabelSandbox, record.LabelResponse, record.LabelCall, record.LabelTurn, record.LabelStep}
}

// SampleNames are the names of the samples that Analyse reads with any labels.
func SampleNames() []string {
	return append(append(cpucost.SampleNames(), cause.SampleNames()...), agentCPU, record.IdleCPU, record.StepBound, record.RemovalBound, record.StepLate)
}
