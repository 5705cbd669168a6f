package main

// The source PostgreSQL: pgx's simple protocol, and columns of types that Grafana turns into fields.

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

type sqlSource struct {
	source
	connection *pgconn.PgConn
}

func newSQLSource(s source) sqlSource {
	host, port, _ := strings.Cut(s.URL, ":")
	text := fmt.Sprintf("user='%s' password='%s' host='%s' dbname='%s' sslmode='%s' port=%s",
		s.User, s.Secure["password"], host, s.JSONData.Database, s.JSONData.Sslmode, port)
	connection, err := pgconn.Connect(context.Background(), text)
	must(err, "PostgreSQL")
	return sqlSource{s, connection}
}

// frame is an answer: names, types and rows as texts (nil is "<nil>").
type frame struct {
	names, types []string
	rows         [][]string
}

func (s sqlSource) ask(query string, in span, timescale bool) frame {
	query = expandSQL(query, in, timescale)
	results, err := s.connection.Exec(context.Background(), query).ReadAll()
	must(err, query)
	check(len(results) == 1 && results[0].CommandTag.Select(), "%s: %d answers", query, len(results))
	var answer frame
	types := pgtype.NewMap()
	for _, field := range results[0].FieldDescriptions {
		known, isKnown := types.TypeForOID(field.DataTypeOID)
		check(isKnown, "%s: column %s has the unknown type %d", query, field.Name, field.DataTypeOID)
		answer.names = append(answer.names, field.Name)
		answer.types = append(answer.types, known.Name)
	}
	for _, row := range results[0].Rows {
		var texts []string
		for at, raw := range row {
			field := results[0].FieldDescriptions[at]
			if raw == nil {
				texts = append(texts, "<nil>")
				continue
			}
			known, _ := types.TypeForOID(field.DataTypeOID)
			value, err := known.Codec.DecodeValue(types, field.DataTypeOID, field.Format, raw)
			must(err, fmt.Sprintf("%s: %s %q", query, field.Name, raw))
			texts = append(texts, fmt.Sprint(value))
		}
		answer.rows = append(answer.rows, texts)
	}
	return answer
}

var timeTypes = map[string]bool{"timestamp": true, "timestamptz": true, "date": true, "int4": true, "int8": true,
	"float4": true, "float8": true, "numeric": true}

// series checks what the format "time series" needs: a column `time` of a time or a number, and a value.
func (s sqlSource) series(query string, in span, timescale bool) frame {
	answer := s.ask(query, in, timescale)
	isTime, values := false, 0
	for at, name := range answer.names {
		if name == "time" {
			isTime = timeTypes[answer.types[at]]
		} else if answer.types[at] != "text" {
			values++
		}
	}
	check(isTime && values > 0, "%s: no series: %v %v", query, answer.names, answer.types)
	check(len(answer.rows) > 0, "%s: no rows", query)
	return answer
}

// The query by which Grafana finds out which tables need no schema before them.
const inSearchPath = `quote_ident(table_schema) IN (
  SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
  FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1),
      array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
    string_to_array(current_setting('search_path'),',') s)`

func (s sqlSource) checkAll(in span) {
	ask := func(query string) [][]string { return s.ask(query, in, true).rows }
	check(len(ask("SELECT 1")) == 1, "SELECT 1")
	version := ask("SELECT current_setting('server_version_num')::int/100 as version")[0][0]
	check(version >= "1200", "version %s", version)
	ask("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'")

	hidden := `('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog',
  '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental')`
	tables := ask(`SELECT CASE WHEN ` + inSearchPath + ` THEN quote_ident(table_name)
    ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
  FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ` + hidden + `
  ORDER BY CASE WHEN ` + inSearchPath + ` THEN 0 ELSE 1 END, 1`)
	check(len(tables) == 4, "tables: %v", tables)
	// The editor asks for the columns of a table by the name that it was given.
	for _, row := range tables {
		name := "'" + row[0] + "'"
		columns := ask(`SELECT quote_ident(column_name) AS "column", data_type AS "type"
  FROM information_schema.columns
  WHERE CASE WHEN array_length(parse_ident(` + name + `),1) = 2
    THEN quote_ident(table_schema) = (parse_ident(` + name + `))[1]
      AND quote_ident(table_name) = (parse_ident(` + name + `))[2]
    ELSE quote_ident(table_name) = ` + name + ` AND ` + inSearchPath + ` END`)
		check(len(columns) >= 4, "columns of %s: %v", name, columns)
	}

	// Variables, with texts and values.
	check(fmt.Sprint(ask("SELECT DISTINCT host FROM cpu ORDER BY host")) == "[[alpha] [beta 2]]", "hosts")
	check(len(ask(`SELECT host AS __text, host AS __value FROM cpu WHERE $__timeFilter(time) GROUP BY host`)) == 2, "hosts")

	for _, timescale := range []bool{true, false} {
		s.series(`SELECT $__timeGroupAlias(time,$__interval), host AS metric, avg(usage_user) AS "user"
  FROM cpu WHERE $__timeFilter(time) AND cpu = 'cpu-total' GROUP BY 1, 2 ORDER BY 1`, in, timescale)
		s.series(`SELECT $__timeGroup(time,'5m') AS "time", avg(used_percent) AS used, max(used) AS most
  FROM mem WHERE time >= $__timeFrom() AND time <= $__timeTo() GROUP BY 1 ORDER BY 1`, in, timescale)
	}
	s.series(`SELECT $__time(time), used_percent FROM mem WHERE $__timeFilter(time) ORDER BY 1 LIMIT 50`, in, true)
	s.series(`SELECT $__timeEpoch(time), used FROM mem WHERE $__timeFilter(time) ORDER BY 1 LIMIT 50`, in, true)
	s.series(`SELECT $__unixEpochGroupAlias(second,1m), count(*) AS n FROM (SELECT extract(epoch from time) AS second FROM mem) AS m WHERE $__unixEpochFilter(second) GROUP BY 1 ORDER BY 1`, in, true)
	// The query builder.
	s.series(`SELECT AVG(usage_user), host, time AS "time" FROM cpu WHERE (cpu = 'cpu0' AND $__timeFilter(time)) GROUP BY host, time ORDER BY time ASC LIMIT 50 `, in, true)
	answer := s.ask(`SELECT time AS "time", title AS text, tags, now() AS seen, true AS ok, 1.5::numeric AS n FROM events WHERE $__timeFilter(time)`, in, true)
	check(len(answer.rows) == 1 && answer.rows[0][1] == "deploy", "annotation: %v", answer.rows)
	check(len(s.ask("SELECT time, used FROM mem WHERE host = 'nobody'", in, true).rows) == 0, "no rows")

	_, err := s.connection.Exec(context.Background(), "SELECT nothing FROM cpu").ReadAll()
	check(err != nil && strings.Contains(err.Error(), "42703"), "a wrong column: %v", err)
	_, err = s.connection.Exec(context.Background(), "DELETE FROM cpu").ReadAll()
	check(err != nil && strings.Contains(err.Error(), "42501"), "a reader deletes: %v", err)
}
