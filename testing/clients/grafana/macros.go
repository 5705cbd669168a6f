package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// intervalText is how Grafana writes an interval: one number and one unit.
func intervalText(interval time.Duration) string {
	for _, unit := range []struct {
		width time.Duration
		name  string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if interval >= unit.width {
			return fmt.Sprintf("%d%s", interval/unit.width, unit.name)
		}
	}
	return "1ms"
}

var macro = regexp.MustCompile(`\$([_a-zA-Z0-9]+)\(([^)]*)\)`)

// expandSQL replaces the macros of the PostgreSQL source.
func expandSQL(query string, in span, timescale bool) string {
	query = strings.NewReplacer("$__interval_ms", fmt.Sprint(in.interval.Milliseconds()),
		"$__interval", intervalText(in.interval)).Replace(query)
	from, to := in.from.UTC().Format(time.RFC3339Nano), in.to.UTC().Format(time.RFC3339Nano)
	var replace func(name string, args []string) string
	replace = func(name string, args []string) string {
		group := func(column string) string {
			width, err := time.ParseDuration(strings.Trim(args[1], "'"))
			must(err, "interval of "+name)
			if name == "__timeGroup" && timescale {
				return fmt.Sprintf("time_bucket('%.3fs',%s)", width.Seconds(), args[0])
			}
			return fmt.Sprintf("floor(%s/%v)*%v", column, width.Seconds(), width.Seconds())
		}
		switch name {
		case "__time":
			return args[0] + ` AS "time"`
		case "__timeEpoch":
			return fmt.Sprintf(`extract(epoch from %s) as "time"`, args[0])
		case "__timeFilter":
			return fmt.Sprintf("%s BETWEEN '%s' AND '%s'", args[0], from, to)
		case "__timeFrom":
			return "'" + from + "'"
		case "__timeTo":
			return "'" + to + "'"
		case "__timeGroup":
			return group(fmt.Sprintf("extract(epoch from %s)", args[0]))
		case "__unixEpochFilter":
			return fmt.Sprintf("%s >= %d AND %s <= %d", args[0], in.from.Unix(), args[0], in.to.Unix())
		case "__unixEpochNanoFilter":
			return fmt.Sprintf("%s >= %d AND %s <= %d", args[0], in.from.UnixNano(), args[0], in.to.UnixNano())
		case "__unixEpochGroup":
			return group("(" + args[0] + ")")
		case "__timeGroupAlias", "__unixEpochGroupAlias":
			return replace(strings.TrimSuffix(name, "Alias"), args) + ` AS "time"`
		}
		must(fmt.Errorf("unknown macro %s", name), query)
		return ""
	}
	return macro.ReplaceAllStringFunc(query, func(found string) string {
		parts := macro.FindStringSubmatch(found)
		args := strings.Split(parts[2], ",")
		for at := range args {
			args[at] = strings.TrimSpace(args[at])
		}
		return replace(parts[1], args)
	})
}

var fluxVariable = regexp.MustCompile(`\bv\.([a-zA-Z]+)`)

// expandFlux replaces the variables that Grafana knows; it does so in the text of the script.
func expandFlux(script string, in span, s source) string {
	values := map[string]string{
		"timeRangeStart": in.from.UTC().Format(time.RFC3339Nano),
		"timeRangeStop":  in.to.UTC().Format(time.RFC3339Nano),
		"windowPeriod":   in.interval.String(),
		"defaultBucket":  `"` + s.JSONData.DefaultBucket + `"`,
		"bucket":         `"` + s.JSONData.DefaultBucket + `"`,
		"organization":   `"` + s.JSONData.Organization + `"`,
	}
	script = fluxVariable.ReplaceAllStringFunc(script, func(found string) string {
		if value, known := values[strings.TrimPrefix(found, "v.")]; known {
			return value
		}
		return found
	})
	return strings.NewReplacer("$__interval_ms", fmt.Sprint(in.interval.Milliseconds()),
		"$__interval", intervalText(in.interval)).Replace(script)
}
