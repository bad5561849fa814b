package export

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/merit"
	"tare/record"
	"tare/study"
)

func TestFiguresCSV(t *testing.T) {
	fewest := merit.Table{Name: "few", Figure: "fewest 90% of io_threads", Kind: study.FigureFewest, Of: "io_threads", Total: "rw",
		Response: record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}, Factors: []string{"bs", "rw"}, Across: []string{"jobs"},
		Fixed: record.Cell{{Factor: "sandbox", Value: "vm"}}, Columns: []record.Cell{{{Factor: "jobs", Value: "4"}}}}
	row := func(rw string, c merit.Cell) {
		x := merit.Row{Cell: record.Cell{{Factor: "bs", Value: "2KiB"}}, Total: rw == "", Cells: []merit.Cell{c}}
		if rw != "" {
			x.Cell = append(x.Cell, record.Level{Factor: "rw", Value: rw})
		}
		fewest.Rows = append(fewest.Rows, x)
	}
	row("read", merit.Cell{Value: new(4.0), Interval: &[2]float64{2, 4}, Level: "4", Lowest: "2", Highest: "4", Blocks: 5})
	row("write", merit.Cell{Value: new(1.0), Interval: &[2]float64{1, 1}, Level: "1", Lowest: "1", Highest: "1", Decided: true, Missing: []string{"8"}, Blocks: 5})
	row("randread", merit.Cell{Why: "there are no values"})
	row("", merit.Cell{Value: new(2.5), Interval: &[2]float64{1.5, 2.5}, Blocks: 5})
	var b bytes.Buffer
	if err := TablesCSV(&b, &analyse.Result{Figures: []merit.Table{fewest}}); err != nil {
		t.Fatal(err)
	}
	want := `table,response,unit,better,factor:bs,factor:rw,factor:jobs,baseline,mean,column_factor,column,combinations,fewer,value,base,ratio,lo,hi,n,verdict,why,accelerator,modelled,figure,blocks,level,lowest,highest,decided,missing
few,throughput,B/s,higher,2KiB,read,4,false,false,,,,false,4,,,2,4,,,,,false,fewest 90% of io_threads,5,4,2,4,false,
few,throughput,B/s,higher,2KiB,write,4,false,false,,,,true,1,,,1,1,,,,,false,fewest 90% of io_threads,5,1,1,1,true,8
few,throughput,B/s,higher,2KiB,randread,4,false,false,,,,false,,,,,,,,there are no values,,false,fewest 90% of io_threads,0,,,,,
few,throughput,B/s,higher,2KiB,,4,false,true,,,,false,2.5,,,1.5,2.5,,,,,false,fewest 90% of io_threads,5,,,,,
`
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
