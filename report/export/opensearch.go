package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"tare/record"
	"tare/report/terminal"
)

// Origin says which results trials are of.
type Origin struct {
	Study    string
	Source   []byte // the text of the study
	Changes  []string
	Started  time.Time
	Modelled bool
}

// run is a name of the results: the same for each export of them, and for no others.
func (o *Origin) run() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%q\x00%s", o.Source, o.Changes, o.Started.UTC().Format(time.RFC3339Nano))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// version is a name of the study: the same for the same text and changes.
func (o *Origin) version() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%q", o.Source, o.Changes)
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:8])
}

// CheckIndex says what is wrong with the name of an index
// (https://docs.opensearch.org/latest/api-reference/index-apis/create-index/).
func CheckIndex(name string) error {
	switch {
	case name == "" || len(name) > 255 || name == "." || name == "..":
		return fmt.Errorf("an index's name has 1 to 255 bytes, and more than dots")
	case strings.ContainsAny(name[:1], "_-+"):
		return fmt.Errorf("index %q: a name does not begin with _, - or +", name)
	case strings.ToLower(name) != name || strings.ContainsAny(name, "\\/*?\"<>| ,#:") || name != terminal.Text(name):
		return fmt.Errorf("index %q: a name has lower case only, and no space and none of the characters \\ / * ? \" < > | , # : in it", name)
	}
	return nil
}

// action is the first line of two: what OpenSearch is to do with the second.
type action struct {
	Index target `json:"index"`
}

type target struct {
	Index string `json:"_index"`
	ID    string `json:"_id"`
}

// searched is a document: a figure of a trial, or a failed trial.
type searched struct {
	Time        time.Time         `json:"@timestamp"` // the trial's start
	Run         string            `json:"run"`
	Study       string            `json:"study"`
	Modelled    bool              `json:"modelled,omitempty"`
	Seq         int               `json:"seq"`
	Block       int               `json:"block"`
	Attempt     int               `json:"attempt"`
	Node        string            `json:"node,omitempty"`
	Status      record.Status     `json:"status"`
	Seconds     float64           `json:"seconds"`
	Cell        cellObject        `json:"cell"`
	Accelerator string            `json:"accelerator,omitempty"`
	Response    string            `json:"response,omitempty"`
	Labels      record.Labels     `json:"labels,omitempty"`
	Unit        record.Unit       `json:"unit,omitempty"`
	Kind        record.SampleType `json:"kind,omitempty"`
	Value       *float64          `json:"value,omitempty"` // absent if it is not a number
	Failure     *record.Failure   `json:"failure,omitempty"`
}

// OpenSearch writes what OpenSearch's and Elasticsearch's bulk interface takes: a document for each figure of
// each trial, and one for each failed trial
// (https://docs.opensearch.org/latest/api-reference/document-apis/bulk/). A document's id is the same in each
// export, so that a second import changes nothing.
func OpenSearch(w io.Writer, index string, o Origin, trials Trials) error {
	buf := bufio.NewWriter(w)
	e := terminal.JSON(buf)
	run := o.run()
	for t, err := range trials {
		if err != nil {
			return fmt.Errorf("write OpenSearch documents: %w", err)
		}
		d := searched{Time: t.Start.UTC(), Run: run, Study: o.Study, Modelled: o.Modelled, Seq: t.Seq, Block: t.Block, Attempt: t.Attempt, Node: t.Node,
			Status: t.Status, Seconds: t.Duration.Seconds(), Cell: cellObject(t.Cell), Accelerator: accelerator(&t)}
		put := func(name string, d searched) {
			if err == nil {
				err = e.Encode(action{target{index, fmt.Sprintf("%s-%d-%s", run, t.Seq, name)}})
			}
			if err == nil {
				err = e.Encode(d)
			}
		}
		if t.Failure != nil {
			f := d
			f.Failure = t.Failure
			put("failure", f)
		}
		for i, s := range t.Samples {
			x := d
			x.Response, x.Labels, x.Unit, x.Kind = s.Name, s.Labels, s.Unit, s.Kind
			if finite(s.Value) {
				x.Value = &s.Value
			}
			put(fmt.Sprint(i), x)
		}
		if err != nil {
			return fmt.Errorf("write OpenSearch documents: %w", err)
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write OpenSearch documents: %w", err)
	}
	return nil
}
