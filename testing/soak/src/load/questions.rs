//! The queries of the load.

/// The query of slow readers.
pub(super) const EVERYTHING: &str = "SELECT * FROM fleet";

/// Queries that a dashboard repeats.
pub(super) fn dashboards() -> Vec<String> {
    let all = [
        "SELECT site, count(*), avg(temp), max(hum) FROM fleet GROUP BY site ORDER BY site",
        "SELECT time_bucket('1m', time) AS minute, avg(temp), max(hum) FROM fleet \
         WHERE dev = 'dev000042' GROUP BY minute ORDER BY minute",
        "SELECT time_bucket('1m', time) AS minute, site, avg(hum) FROM fleet \
         GROUP BY minute, site ORDER BY minute, site",
        "SELECT dev, last(temp, time) FROM fleet GROUP BY dev ORDER BY dev LIMIT 50",
        "SELECT region, count(*), sum(amount) FROM events GROUP BY region ORDER BY region",
        "SELECT * FROM fleet WHERE dev = 'dev000007' ORDER BY time DESC LIMIT 20",
    ];
    all.map(str::to_owned).into()
}

/// Queries that a materialized view answers.
pub(super) fn views() -> Vec<String> {
    let all = [
        "SELECT minute, site, sum(n) AS n, max(high) FROM fleet_minutes GROUP BY minute, site \
         ORDER BY minute DESC LIMIT 100",
        "SELECT dev, max(high) FROM fleet_minutes GROUP BY dev ORDER BY dev LIMIT 100",
    ];
    all.map(str::to_owned).into()
}

/// Queries that sort or group many rows: with little memory they must spill, or are refused.
pub(super) fn sorts() -> Vec<String> {
    let all = [
        "SELECT count(*) FROM (SELECT dev, hum, temp FROM (SELECT * FROM fleet LIMIT 2000000) \
         ORDER BY hum, time OFFSET 1)",
        "SELECT session, count(*) AS n, sum(amount) FROM events GROUP BY session \
         ORDER BY n DESC, session LIMIT 10",
        "SELECT count(*) FROM (SELECT dev, time, row_number() OVER (PARTITION BY dev ORDER BY \
         temp, time) AS n FROM (SELECT * FROM fleet LIMIT 1000000)) WHERE n < 10",
        "SELECT count(DISTINCT hum) FROM fleet",
    ];
    all.map(str::to_owned).into()
}

/// Queries that take all the memory they can get, in operators that cannot spill.
pub(super) fn runaways() -> Vec<String> {
    let all = [
        "SELECT count(*) FROM (SELECT * FROM fleet LIMIT 2000000) a JOIN (SELECT * FROM fleet \
         LIMIT 2000000) b ON a.hum = b.temp",
        "SELECT length(string_agg(status || dev, ',')) FROM (SELECT * FROM fleet LIMIT 3000000)",
        "SELECT count(*) FROM (SELECT status, hum FROM fleet LIMIT 20000) a, (SELECT status, temp \
         FROM fleet LIMIT 2000) b WHERE a.hum + b.temp < 1",
        "SELECT array_length(array_agg(dev ORDER BY hum)) FROM (SELECT * FROM fleet LIMIT 3000000)",
        "SELECT count(*), sum(x) FROM (SELECT avg(hum) OVER (ORDER BY time ROWS BETWEEN 100 \
         PRECEDING AND 100 FOLLOWING) AS x FROM (SELECT * FROM fleet LIMIT 500000))",
    ];
    all.map(str::to_owned).into()
}
