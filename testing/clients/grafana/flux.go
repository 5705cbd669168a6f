package main

// The source InfluxDB with Flux: influxdb-client-go, whose result Grafana turns into one frame for each table.

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api/query"
)

type fluxSource struct {
	source
	client influxdb2.Client
}

func newFluxSource(s source) fluxSource {
	return fluxSource{s, influxdb2.NewClientWithOptions(s.URL, s.Secure["token"], influxdb2.DefaultOptions())}
}

// table is a table of an answer: its columns and rows.
type table struct {
	columns []*query.FluxColumn
	rows    []*query.FluxRecord
}

var fluxTypes = map[string]bool{"string": true, "dateTime:RFC3339": true, "dateTime:RFC3339Nano": true,
	"duration": true, "double": true, "boolean": true, "long": true, "unsignedLong": true, "base64Binary": true}

func (s fluxSource) try(script string) ([]table, error) {
	result, err := s.client.QueryAPI(s.JSONData.Organization).Query(context.Background(), script)
	if err != nil {
		return nil, err
	}
	var tables []table
	number := -1
	for result.Next() {
		// Tables of the same columns share their annotations; their numbers tell them apart.
		if result.TableChanged() || result.Record().Table() != number {
			number = result.Record().Table()
			tables = append(tables, table{columns: result.TableMetadata().Columns()})
			for _, column := range result.TableMetadata().Columns() {
				check(fluxTypes[column.DataType()], "Grafana cannot read the type %s: %s", column.DataType(), script)
			}
		}
		last := &tables[len(tables)-1]
		last.rows = append(last.rows, result.Record())
	}
	return tables, result.Err()
}

func (s fluxSource) ask(script string, in span) []table {
	script = expandFlux(script, in, s.source)
	tables, err := s.try(script)
	must(err, script)
	return tables
}

// list is what a variable shows: the column `_value` of all tables, or else the first column of its own.
func (s fluxSource) list(script string, in span) string {
	var values []string
	for _, one := range s.ask(script, in) {
		for _, row := range one.rows {
			values = append(values, fmt.Sprint(row.Value()))
		}
	}
	sort.Strings(values)
	return strings.Join(values, " ")
}

func (s fluxSource) checkAll(in span) {
	// "Save & test" counts the values of the first column.
	buckets := s.ask("buckets()", in)
	found := false
	for _, row := range buckets[0].rows {
		found = found || row.ValueByKey("name") == "telegraf"
	}
	check(found, "buckets() does not list telegraf")

	imports := "import \"influxdata/influxdb/schema\"\n"
	for script, wanted := range map[string]string{
		imports + `schema.measurements(bucket: v.bucket)`:                                                                                                              "cpu disk events mem",
		imports + `schema.measurementFieldKeys(bucket: v.defaultBucket, measurement: "mem")`:                                                                           "used used_percent",
		imports + `schema.tagValues(bucket: "telegraf", tag: "host")`:                                                                                                  "alpha beta 2",
		imports + `schema.measurementTagValues(bucket: "telegraf", measurement: "cpu", tag: "cpu")`:                                                                    "cpu-total cpu0",
		imports + `schema.tagValues(bucket: v.defaultBucket, tag: "host", predicate: (r) => r._measurement == "disk", start: v.timeRangeStart, stop: v.timeRangeStop)`: "alpha beta 2",
		`import "influxdata/influxdb/v1"
v1.tagValues(bucket: v.bucket, tag: "path")`: "/",
		`from(bucket: v.bucket) |> range(start: v.timeRangeStart) |> filter(fn: (r) => r._measurement == "cpu")
  |> keep(columns: ["host"]) |> distinct(column: "host") |> group() |> distinct(column: "host")`: "alpha beta 2",
	} {
		got := s.list(script, in)
		check(got == wanted, "%s: %q, not %q", script, got, wanted)
	}

	series := func(script string, in span, count int) []table {
		tables := s.ask(script, in)
		check(len(tables) == count, "%s: %d tables", script, len(tables))
		for _, one := range tables {
			row := one.rows[0]
			if row.Value() == nil && len(one.rows) > 1 {
				// The first window may end before the first point.
				row = one.rows[1]
			}
			check(row.Measurement() != "" && row.Field() != "", "%s: no series", script)
			check(!row.Time().IsZero(), "%s: no time", script)
			_, isNumber := row.Value().(float64)
			check(isNumber, "%s: %T", script, row.Value())
		}
		return tables
	}
	builder := `from(bucket: v.defaultBucket)
  |> range(start: v.timeRangeStart, stop: v.timeRangeStop)
  |> filter(fn: (r) => r["_measurement"] == "cpu")
  |> filter(fn: (r) => r["_field"] == "usage_user" or r["_field"] == "usage_system")
  |> filter(fn: (r) => r["host"] =~ /^(alpha|beta 2)$/)
  |> aggregateWindow(every: v.windowPeriod, fn: mean, createEmpty: %s)
  |> yield(name: "mean")`
	tables := series(fmt.Sprintf(builder, "false"), in, 8)
	check(tables[0].rows[0].ValueByKey("host") == "alpha", "labels: %v", tables[0].rows[0].Values())
	// Windows whose text is "1m30s" in Go, and of milliseconds.
	series(fmt.Sprintf(builder, "true"), span{in.from, in.to, 90 * time.Second}, 8)
	series(fmt.Sprintf(builder, "false"), span{in.to.Add(-time.Minute), in.to, 500 * time.Millisecond}, 8)
	series(`from(bucket: "telegraf") |> range(start: -2h) |> filter(fn: (r) => r._measurement == "mem" and r._field == "used_percent")
  |> last()`, in, 2)
	series(`from(bucket: "telegraf") |> range(start: v.timeRangeStart, stop: v.timeRangeStop)
  |> filter(fn: (r) => r._measurement == "mem" and r._field == "used")
  |> derivative(unit: 1s, nonNegative: true) |> aggregateWindow(every: $__interval, fn: max, createEmpty: false)`, in, 2)
	// A table, without `_measurement`.
	wide := s.ask(`from(bucket: v.bucket) |> range(start: v.timeRangeStart, stop: v.timeRangeStop)
  |> filter(fn: (r) => r._measurement == "events")
  |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")
  |> keep(columns: ["_time", "title", "text", "tags"])`, in)
	check(len(wide) == 1 && wide[0].rows[0].ValueByKey("title") == "deploy", "annotation: %v", wide)
	check(len(s.ask(`from(bucket: "telegraf") |> range(start: -1h) |> filter(fn: (r) => r.host == "nobody")`, in)) == 0,
		"no rows are no tables")

	_, err := s.try(`from(bucket: "telegraf") |> range(start: -1h) |> nothing()`)
	check(err != nil && strings.Contains(err.Error(), "nothing"), "an error names the function: %v", err)
	wrong := s.source
	wrong.Secure = map[string]string{"token": "wrong"}
	_, err = newFluxSource(wrong).try("buckets()")
	check(err != nil && strings.Contains(err.Error(), "unauthorized"), "a wrong token: %v", err)
}
