package main

// The source InfluxDB with InfluxQL: GET and POST of /query with db, epoch=ms and q, and an answer that
// Grafana's converter can read: it knows the keys below, numbers as times, and one type for each column.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

type influxqlSource struct{ source }

type series struct {
	Name    string
	Tags    map[string]string
	Columns []string
	Values  [][]any
}

func (s influxqlSource) send(mode, query, policy string) (int, []byte) {
	params := url.Values{"db": {s.JSONData.DBName}, "epoch": {"ms"}}
	if policy != "" && policy != "default" {
		params.Set("rp", policy)
	}
	var body io.Reader
	if mode == "GET" {
		params.Set("q", query)
	} else {
		body = strings.NewReader(url.Values{"q": {query}}.Encode())
	}
	request, err := http.NewRequest(mode, s.URL+"/query?"+params.Encode(), body)
	must(err, query)
	if mode == "POST" {
		request.Header.Set("Content-type", "application/x-www-form-urlencoded")
	}
	request.SetBasicAuth(s.User, s.Secure["password"])
	answer, err := http.DefaultClient.Do(request)
	must(err, query)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(err, query)
	check(strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json"), "%s: no JSON", query)
	return answer.StatusCode, text
}

// ask sends a query both ways and returns its series, after the checks that hold for every answer.
func (s influxqlSource) ask(query string) []series {
	status, text := s.send("GET", query, "")
	check(status == 200, "%s: %d %s", query, status, text)
	posted, again := s.send("POST", query, "default")
	check(posted == 200, "%s: %d %s", query, posted, again)
	var answer struct {
		Results []struct {
			StatementID int `json:"statement_id"`
			Series      []struct {
				series
				Partial bool
			}
			Partial bool
			Error   string
		}
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	must(decoder.Decode(&answer), query+": "+string(text))
	check(len(answer.Results) == 1 && answer.Results[0].Error == "", "%s: %s", query, text)
	var all []series
	for _, one := range answer.Results[0].Series {
		check(len(one.Columns) > 0, "%s: no columns: %s", query, text)
		kinds := make([]string, len(one.Columns))
		for _, row := range one.Values {
			check(len(row) == len(one.Columns), "%s: a row of another width: %s", query, text)
			for at, value := range row {
				if one.Columns[at] == "time" && at == 0 {
					number, isNumber := value.(json.Number)
					check(isNumber, "%s: time is no number: %v", query, value)
					_, err := number.Int64()
					must(err, query)
				} else if value != nil {
					kind := fmt.Sprintf("%T", value)
					check(kinds[at] == "" || kinds[at] == kind, "%s: column %s has two types", query, one.Columns[at])
					kinds[at] = kind
				}
			}
		}
		all = append(all, one.series)
	}
	return all
}

// list is what a list of the editor or a variable shows: of SHOW TAG VALUES the second column, else the first.
func (s influxqlSource) list(query string) []string {
	var values []string
	for _, one := range s.ask(query) {
		column := 0
		if len(one.Columns) >= 2 && strings.Contains(strings.ToLower(query), "show tag values") {
			column = 1
		}
		for _, row := range one.Values {
			values = append(values, fmt.Sprint(row[column]))
		}
	}
	return values
}

// expand replaces Grafana's macros.
func (s influxqlSource) expand(query string, in span) string {
	interval := intervalText(in.interval)
	filter := fmt.Sprintf("time >= %dms and time <= %dms", in.from.UnixMilli(), in.to.UnixMilli())
	return strings.NewReplacer("$timeFilter", filter, "$__interval_ms", fmt.Sprint(in.interval.Milliseconds()),
		"$__interval", interval, "$interval", interval).Replace(query)
}

func (s influxqlSource) checkAll(in span) {
	// "Save & test".
	check(len(s.list("SHOW measurements")) == 4, "SHOW measurements")

	for query, wanted := range map[string]string{
		`SHOW RETENTION POLICIES on "telegraf"`:                                              "autogen",
		"SHOW DATABASES":                                                                     "telegraf",
		"SHOW MEASUREMENTS LIMIT 100":                                                        "cpu disk events mem",
		"SHOW MEASUREMENTS WITH MEASUREMENT =~ /(?i)ME/ LIMIT 100":                           "mem",
		`SHOW MEASUREMENTS WHERE "path" = '/' LIMIT 100`:                                     "disk",
		`SHOW FIELD KEYS FROM "mem"`:                                                         "used used_percent",
		`SHOW FIELD KEYS FROM "autogen"."mem"`:                                               "used used_percent",
		`SHOW FIELD KEYS FROM /^me/`:                                                         "used used_percent",
		`SHOW TAG KEYS FROM "cpu"`:                                                           "cpu host",
		`SHOW TAG KEYS FROM "autogen"."cpu" WHERE "cpu" = 'cpu0'`:                            "cpu host",
		`SHOW TAG VALUES FROM "cpu" WITH KEY = "host"`:                                       "alpha beta 2",
		`SHOW TAG VALUES FROM "cpu" WITH KEY = "host" WHERE "cpu" =~ /^cpu0$/`:               "alpha beta 2",
		`SHOW TAG VALUES FROM "autogen"."cpu" WITH KEY = "cpu" WHERE "host" = 'beta 2'`:      "cpu-total cpu0",
		`SHOW TAG VALUES FROM "cpu" WITH KEY = "host" WHERE "host" != 'alpha'`:               "beta 2",
		`SHOW TAG VALUES WITH KEY = "path"`:                                                  "/",
		`SHOW TAG VALUES FROM "cpu" WITH KEY IN ("cpu", "host") WHERE "host"::tag = 'alpha'`: "cpu-total cpu0 alpha",
		`SHOW TAG VALUES FROM "nothing" WITH KEY = "host"`:                                   "",
	} {
		got := strings.Join(s.list(query), " ")
		check(got == wanted, "%s: %q, not %q", query, got, wanted)
	}

	rows := func(query string, seriesCount int, columns string) []series {
		query = s.expand(query, in)
		all := s.ask(query)
		check(len(all) == seriesCount, "%s: %d series", query, len(all))
		for _, one := range all {
			check(strings.Join(one.Columns, " ") == columns, "%s: columns %v", query, one.Columns)
			check(len(one.Values) > 0, "%s: no rows", query)
		}
		return all
	}
	// The query builder.
	rows(`SELECT mean("usage_user") FROM "cpu" WHERE ("host"::tag = 'alpha' AND "cpu"::tag = 'cpu-total') AND $timeFilter GROUP BY time($__interval) fill(null)`, 1, "time mean")
	all := rows(`SELECT mean("usage_user") AS "user", max("usage_user") / 100 AS "top" FROM "autogen"."cpu" WHERE ("host"::tag =~ /^(alpha|beta 2)$/) AND $timeFilter GROUP BY time($__interval), "host"::tag, "cpu"::tag fill(previous)`, 4, "time user top")
	check(all[0].Tags["host"] == "alpha" && all[0].Tags["cpu"] == "cpu-total", "tags: %v", all[0].Tags)
	rows(`SELECT non_negative_derivative(mean("used"), 10s) FROM "mem" WHERE $timeFilter GROUP BY time($__interval), "host" fill(none)`, 2, "time non_negative_derivative")
	rows(`SELECT moving_average(mean("used_percent"), 3) FROM "mem" WHERE $timeFilter GROUP BY time(1m) fill(linear)`, 1, "time moving_average")
	rows(`SELECT percentile("used_percent", 95), stddev("used_percent"), spread("used_percent"), count("used_percent") FROM "mem" WHERE $timeFilter GROUP BY time(5m, 1m) fill(0) tz('Europe/Berlin')`, 1, "time percentile stddev spread count")
	rows(`SELECT top("used_percent", 3) FROM "mem" WHERE $timeFilter`, 1, "time top")
	rows(`SELECT "usage_user" FROM "cpu" WHERE "usage_user"::field > 5 AND $timeFilter GROUP BY "host" ORDER BY time DESC limit 5 slimit 1`, 1, "time usage_user")
	rows(`SELECT mean("used_percent") FROM /^(mem|disk)$/ WHERE $timeFilter GROUP BY time(1m) fill(none)`, 2, "time mean")
	rows(`SELECT mean("m") FROM (SELECT max("usage_user") AS "m" FROM "cpu" WHERE $timeFilter GROUP BY time($__interval), "host") WHERE $timeFilter GROUP BY time(1m)`, 1, "time mean")
	rows(`SELECT last("used_percent") FROM "disk" WHERE $timeFilter GROUP BY *`, 2, "time last")
	empty := s.ask(s.expand(`SELECT mean("usage_user") FROM "cpu" WHERE "host" = 'nobody' AND $timeFilter GROUP BY time(1m)`, in))
	check(len(empty) == 0, "no rows are no series: %v", empty)
	// Annotations.
	events := rows(`SELECT "title", "text", "tags" FROM "events" WHERE $timeFilter`, 1, "time title text tags")
	check(fmt.Sprint(events[0].Values[0][1:]) == "[deploy v1.2 deploy,prod]", "annotation: %v", events[0].Values)
	// Logs and tables of Explore.
	rows(`SELECT * FROM "events" WHERE $timeFilter limit 1000`, 1, "time host tags text title")

	// What is wrong is told in the member `error`, which Grafana shows.
	for query, status := range map[string]int{"SELECT FROM": 400, `SELECT mean(x) FROM cpu GROUP BY time(0x)`: 400} {
		got, text := s.send("GET", query, "")
		var answer struct{ Error string }
		must(json.Unmarshal(text, &answer), query)
		check(got == status && answer.Error != "", "%s: %d %s", query, got, text)
	}
	wrong := s
	wrong.Secure = map[string]string{"password": "wrong"}
	status, text := wrong.send("GET", "SHOW measurements", "")
	check(status == 401 && strings.Contains(string(text), `"error"`), "a wrong password: %d %s", status, text)
}
