package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ProcessText is what one process said at /metrics.
type ProcessText struct {
	Process string
	Text    []byte // nil: it did not answer
	// Restarts is how often the process was started again.
	Restarts int
}

// ContentType is that of what Merge writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Merge writes the metrics of several processes as one text, each with the label process. A process whose text is missing or wrong is left
// out; dynamo_process_up says so. Beside it stands dynamo_process_restarts_total.
func Merge(w io.Writer, from []ProcessText) error {
	all := map[string]*dto.MetricFamily{}
	up := family("dynamo_process_up", "1 where the process answered a request for its metrics, else 0.", dto.MetricType_GAUGE)
	restarts := family("dynamo_process_restarts_total", "Times that the process was started again.", dto.MetricType_COUNTER)
	for _, p := range from {
		ok := 0.0
		if p.Text != nil && add(all, p) == nil {
			ok = 1
		}
		n := float64(p.Restarts)
		up.Metric = append(up.Metric, &dto.Metric{Label: labels(nil, p.Process), Gauge: &dto.Gauge{Value: &ok}})
		restarts.Metric = append(restarts.Metric, &dto.Metric{Label: labels(nil, p.Process), Counter: &dto.Counter{Value: &n}})
	}
	all[up.GetName()], all[restarts.GetName()] = up, restarts
	names := make([]string, 0, len(all))
	for n, f := range all {
		if len(f.Metric) > 0 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		if _, err := expfmt.MetricFamilyToText(w, all[n]); err != nil {
			return err
		}
	}
	return nil
}

func family(name, help string, t dto.MetricType) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Help: &help, Type: &t}
}

// add adds a process's families to all, or nothing.
func add(all map[string]*dto.MetricFamily, p ProcessText) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	fs, err := parser.TextToMetricFamilies(bytes.NewReader(p.Text))
	if err != nil {
		return err
	}
	for n, f := range fs {
		if old, ok := all[n]; ok && old.GetType() != f.GetType() {
			return fmt.Errorf("metric %q: is a %s in one process and a %s in %s", n, old.GetType(), f.GetType(), p.Process)
		}
	}
	for n, f := range fs {
		for _, m := range f.Metric {
			m.Label = labels(m.Label, p.Process)
		}
		if old, ok := all[n]; ok {
			old.Metric = append(old.Metric, f.Metric...)
			continue
		}
		all[n] = f
	}
	return nil
}

// labels adds the label process, sorted.
func labels(ls []*dto.LabelPair, process string) []*dto.LabelPair {
	name := "process"
	ls = append(slices.DeleteFunc(ls, func(l *dto.LabelPair) bool { return l.GetName() == name }), &dto.LabelPair{Name: &name, Value: &process})
	slices.SortFunc(ls, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return ls
}
