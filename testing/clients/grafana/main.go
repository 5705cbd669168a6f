// What Grafana's data sources InfluxDB (InfluxQL, Flux) and PostgreSQL send to a server, sent to Marigram:
// checks of the source, lists for the query editor and for variables, panels with their macros expanded,
// annotations. Grafana itself cannot be installed from a registry; the requests follow its public source
// (pkg/tsdb/influxdb, pkg/tsdb/grafana-postgresql-datasource and their front ends), with the client libraries
// that it uses. The sources and the dashboard are those of contrib/grafana, so they are checked, too.
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gopkg.in/yaml.v3"
)

// source is a data source as contrib/grafana provisions it.
type source struct {
	UID      string
	Type     string
	URL      string
	User     string
	JSONData struct {
		Version, DBName, HTTPMode, Organization, DefaultBucket, Database, Sslmode string
		Timescaledb                                                               bool
	} `yaml:"-"`
	Raw    map[string]any    `yaml:"jsonData"`
	Secure map[string]string `yaml:"secureJsonData"`
}

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func check(holds bool, what string, values ...any) {
	if !holds {
		must(fmt.Errorf(what, values...), "wrong answer")
	}
}

// sources reads the provisioned sources, with the server's ports in place of the usual ones.
func sources(contrib string) map[string]source {
	text, err := os.ReadFile(filepath.Join(contrib, "provisioning/datasources/marigram.yaml"))
	must(err, "sources")
	text = bytes.ReplaceAll(text, []byte("127.0.0.1:8086"), []byte("127.0.0.1:"+os.Getenv("MARIGRAM_HTTP_PORT")))
	text = bytes.ReplaceAll(text, []byte("127.0.0.1:5432"), []byte("127.0.0.1:"+os.Getenv("MARIGRAM_PORT")))
	var file struct{ Datasources []source }
	must(yaml.Unmarshal(text, &file), "sources")
	byUID := map[string]source{}
	for _, one := range file.Datasources {
		word := func(key string) string { value, _ := one.Raw[key].(string); return value }
		one.JSONData.Version, one.JSONData.DBName = word("version"), word("dbName")
		one.JSONData.HTTPMode, one.JSONData.Organization = word("httpMode"), word("organization")
		one.JSONData.DefaultBucket, one.JSONData.Database = word("defaultBucket"), word("database")
		one.JSONData.Sslmode = word("sslmode")
		one.JSONData.Timescaledb, _ = one.Raw["timescaledb"].(bool)
		for key, value := range one.Secure {
			// Grafana expands the environment in these files.
			one.Secure[key] = os.ExpandEnv(value)
		}
		byUID[one.UID] = one
	}
	return byUID
}

// span is the time range of a dashboard, and the interval that Grafana computes from it.
type span struct {
	from, to time.Time
	interval time.Duration
}

var hosts = []string{"alpha", "beta 2"}

// fill writes what Telegraf would have written within the hour: a row each ten seconds.
func fill(now time.Time) {
	var lines bytes.Buffer
	for second := 0; second < 3600; second += 10 {
		at := now.Add(-time.Duration(second) * time.Second).UnixNano()
		for _, host := range []string{`alpha`, `beta\ 2`} {
			for _, cpu := range []string{"cpu-total", "cpu0"} {
				fmt.Fprintf(&lines, "cpu,host=%s,cpu=%s usage_user=%d,usage_system=2,usage_iowait=0.5,usage_idle=%d %d\n",
					host, cpu, second%60, 97-second%60, at)
			}
			fmt.Fprintf(&lines, "mem,host=%s used_percent=%d,used=%di %d\n", host, second%90, (3600-second)*1000, at)
			fmt.Fprintf(&lines, "disk,host=%s,path=/ used_percent=%d,inodes_free=7i %d\n", host, second%80, at)
		}
	}
	fmt.Fprintf(&lines, "events,host=alpha title=\"deploy\",text=\"v1.2\",tags=\"deploy,prod\" %d\n",
		now.Add(-time.Minute).UnixNano())
	url := "http://127.0.0.1:" + os.Getenv("MARIGRAM_HTTP_PORT") + "/write?db=telegraf"
	request, err := http.NewRequest("POST", url, &lines)
	must(err, "fill")
	request.SetBasicAuth(os.Getenv("MARIGRAM_ADMIN"), os.Getenv("MARIGRAM_ADMIN_PASSWORD"))
	answer, err := http.DefaultClient.Do(request)
	must(err, "fill")
	defer answer.Body.Close()
	check(answer.StatusCode == 204, "the rows were not stored: %s", answer.Status)
}

func main() {
	contrib := os.Args[1]
	now := time.Now().Truncate(time.Millisecond)
	fill(now)
	byUID := sources(contrib)
	range1h := span{now.Add(-time.Hour), now, 10 * time.Second}
	influxql := influxqlSource{byUID["marigram-influxql"]}
	influxql.checkAll(range1h)
	flux := newFluxSource(byUID["marigram-flux"])
	flux.checkAll(range1h)
	sql := newSQLSource(byUID["marigram-sql"])
	sql.checkAll(range1h)
	checkDashboard(filepath.Join(contrib, "dashboards/hosts.json"), range1h, influxql, flux, sql)
	fmt.Println("ok")
}
