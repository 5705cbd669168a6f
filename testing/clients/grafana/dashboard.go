package main

// The example dashboard: each of its queries, for all hosts and for one, has an answer that its panel can show.

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

type reference struct{ Type, UID string }

// part is a step of InfluxQL's query builder.
type part struct {
	Type   string
	Params []string
}

type target struct {
	Query, RawSQL, ResultFormat, Format, Measurement string
	RawQuery                                         bool
	Datasource                                       reference
	Select                                           [][]part
	GroupBy                                          []part
	Tags                                             []struct{ Key, Operator, Value, Condition string }
}

type dashboard struct {
	Panels []struct {
		Title   string
		Targets []target
	}
	Templating struct {
		List []struct {
			Name, Query string
			Datasource  reference
		}
	}
	Annotations struct {
		List []struct {
			Query      string
			Datasource reference
		}
	}
}

// build is the statement of the query builder, as Grafana's server writes it.
func (t target) build() string {
	name := func(key string) string {
		if tag, isTag := strings.CutSuffix(key, "::tag"); isTag {
			return `"` + tag + `"::tag`
		}
		return `"` + key + `"`
	}
	render := func(one part, inner string) string {
		switch one.Type {
		case "field", "tag":
			return name(one.Params[0])
		case "math":
			return inner + " " + one.Params[0]
		case "alias":
			return inner + ` AS "` + one.Params[0] + `"`
		}
		params := one.Params
		if inner != "" {
			params = append([]string{inner}, params...)
		}
		return one.Type + "(" + strings.Join(params, ", ") + ")"
	}
	var selected, tags []string
	for _, parts := range t.Select {
		text := ""
		for _, one := range parts {
			text = render(one, text)
		}
		selected = append(selected, text)
	}
	for at, tag := range t.Tags {
		value := tag.Value
		if tag.Operator != "=~" && tag.Operator != "!~" {
			value = "'" + value + "'"
		}
		condition := ""
		if at > 0 {
			condition = tag.Condition + " "
		}
		tags = append(tags, condition+name(tag.Key)+" "+tag.Operator+" "+value)
	}
	text := "SELECT " + strings.Join(selected, ", ") + ` FROM "` + t.Measurement + `" WHERE (` + strings.Join(tags, " ") + ") AND $timeFilter"
	for at, one := range t.GroupBy {
		switch {
		case at == 0:
			text += " GROUP BY "
		case one.Type == "fill":
			text += " "
		default:
			text += ", "
		}
		text += render(one, "")
	}
	return text
}

// withHosts replaces the variable `host`, as each source formats several values.
func withHosts(text, kind string, chosen []string) string {
	var escaped, quoted []string
	for _, host := range chosen {
		escaped = append(escaped, regexp.QuoteMeta(host))
		quoted = append(quoted, "'"+host+"'")
	}
	pattern := strings.Join(escaped, "|")
	if len(chosen) > 1 {
		pattern = "(" + pattern + ")"
	}
	text = strings.ReplaceAll(text, "${host:regex}", pattern)
	if kind == "postgres" {
		return strings.ReplaceAll(text, "$host", strings.Join(quoted, ","))
	}
	return strings.ReplaceAll(text, "$host", pattern)
}

func checkDashboard(path string, in span, influxql influxqlSource, flux fluxSource, sql sqlSource) {
	text, err := os.ReadFile(path)
	must(err, path)
	var board dashboard
	must(json.Unmarshal(text, &board), path)
	for _, variable := range board.Templating.List {
		check(variable.Datasource.UID == influxql.UID, "variable %s", variable.Name)
		got := influxql.list(variable.Query)
		check(fmt.Sprint(got) == fmt.Sprint(hosts), "variable %s: %v", variable.Name, got)
	}
	for _, annotation := range board.Annotations.List {
		check(len(influxql.ask(influxql.expand(annotation.Query, in))) == 1, "%s", annotation.Query)
	}
	check(len(board.Panels) >= 6, "panels")
	for _, panel := range board.Panels {
		for _, one := range panel.Targets {
			for _, chosen := range [][]string{hosts, hosts[1:]} {
				count := 0
				switch one.Datasource.UID {
				case influxql.UID:
					query := one.Query
					if !one.RawQuery {
						query = one.build()
					}
					answer := influxql.ask(influxql.expand(withHosts(query, "influxdb", chosen), in))
					count = len(answer)
				case flux.UID:
					count = len(flux.ask(withHosts(one.Query, "influxdb", chosen), in))
				case sql.UID:
					query := withHosts(one.RawSQL, "postgres", chosen)
					var answer frame
					if one.Format == "time_series" {
						answer = sql.series(query, in, sql.JSONData.Timescaledb)
					} else {
						answer = sql.ask(query, in, sql.JSONData.Timescaledb)
					}
					found := map[string]bool{}
					for _, row := range answer.rows {
						for _, cell := range row {
							for _, host := range hosts {
								if cell == host {
									found[cell] = true
								}
							}
						}
					}
					count = len(found)
				}
				check(count == len(chosen), "panel %q: %d of %d hosts", panel.Title, count, len(chosen))
			}
		}
	}
}
