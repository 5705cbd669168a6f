//! The questions, each with its SQL, its answer and its duration.

use crate::client::DataClient;
use crate::plot;
use crate::reply::StatementReply;
use crate::table;
use crate::terminal::{self, TextStyle, styled};
use anyhow::{Result, bail};
use std::time::Instant;

/// How an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerDisplay {
    Table,
    Plot,
}

struct DemoQuestion {
    words: &'static str,
    sql: &'static str,
    show: AnswerDisplay,
}

const QUESTIONS: [DemoQuestion; 9] = [
    DemoQuestion {
        words: "What is the latest value of each sensor?",
        sql: "SELECT sensor, kind, max(time) AS time, last(value, time) AS value
FROM sensors GROUP BY sensor, kind ORDER BY kind, sensor",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "How did the machine's temperature change before it failed (ten-minute averages)?",
        sql: "SELECT time_bucket(INTERVAL '10 minutes', time) AS t, avg(value) AS temperature
FROM sensors
WHERE sensor = 'machine' AND time >= '2014-02-05' AND time < '2014-02-11'
GROUP BY t ORDER BY t",
        show: AnswerDisplay::Plot,
    },
    DemoQuestion {
        words: "Which were its hottest hours?",
        sql: "SELECT time_bucket(INTERVAL '1 hour', time) AS hour,
       round(avg(value), 2) AS average, round(max(value), 2) AS peak
FROM sensors WHERE sensor = 'machine'
GROUP BY hour ORDER BY average DESC LIMIT 5",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "Where are gaps of more than three hours in the sensors' data?",
        sql: "SELECT sensor, kind, before AS silent_from, time AS silent_to, time - before AS gap
FROM (SELECT sensor, kind, time,
             lag(time) OVER (PARTITION BY sensor, kind ORDER BY time) AS before
      FROM sensors) AS steps
WHERE time - before > INTERVAL '3 hours' ORDER BY gap DESC LIMIT 8",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "Is the road slower when it is fuller (two sensors joined by time)?",
        sql: "SELECT floor(o.value / 5) * 5 AS occupancy_from, count(*) AS moments,
       round(avg(s.value), 1) AS speed
FROM sensors o JOIN sensors s
  ON s.sensor = o.sensor
 AND time_bucket(INTERVAL '10 minutes', s.time) = time_bucket(INTERVAL '10 minutes', o.time)
WHERE o.kind = 'occupancy' AND s.kind = 'speed'
GROUP BY occupancy_from ORDER BY occupancy_from LIMIT 8",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "Which trucks are low on fuel, and where are they?",
        sql: "SELECT truck, fleet, round(100 * last(fuel, time)) AS fuel_percent,
       last(lat, time) AS lat, last(lon, time) AS lon, max(time) AS time
FROM readings GROUP BY truck, fleet
HAVING last(fuel, time) < 0.4 ORDER BY fuel_percent LIMIT 8",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "How far did each truck drive?",
        sql: "SELECT truck, model,
       round(sum(111.2 * sqrt(power(lat - lat0, 2)
                              + power((lon - lon0) * cos(radians(lat)), 2)))) AS km
FROM (SELECT truck, model, lat, lon, lag(lat) OVER drive AS lat0, lag(lon) OVER drive AS lon0
      FROM readings WINDOW drive AS (PARTITION BY truck ORDER BY time)) AS steps
GROUP BY truck, model ORDER BY km DESC LIMIT 8",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "Which trucks were silent longest?",
        sql: "SELECT truck, before AS silent_from, time AS silent_to, time - before AS silent
FROM (SELECT truck, time, lag(time) OVER (PARTITION BY truck ORDER BY time) AS before
      FROM readings) AS steps
WHERE time - before > INTERVAL '5 minutes' ORDER BY silent DESC LIMIT 5",
        show: AnswerDisplay::Table,
    },
    DemoQuestion {
        words: "Does a heavy load make engines hot (by load, while driving)?",
        sql: "SELECT CASE WHEN load < 6000 THEN 'light' WHEN load < 12000 THEN 'medium'
            ELSE 'heavy' END AS load_class,
       count(DISTINCT d.truck) AS trucks, round(avg(engine_temp), 1) AS engine_temp,
       round(avg(speed), 1) AS speed
FROM diagnostics d JOIN readings r ON r.truck = d.truck AND r.time = d.time
WHERE speed > 20 GROUP BY load_class ORDER BY avg(load)",
        show: AnswerDisplay::Table,
    },
];

/// Runs all questions and prints the answers.
pub(super) fn ask_all(client: &mut DataClient) -> Result<()> {
    for question in &QUESTIONS {
        outln!("{}", styled(TextStyle::Bold, question.words));
        for line in question.sql.lines() {
            outln!("  {}", styled(TextStyle::Code, line));
        }
        ask(client, question)?;
        outln!("");
    }
    Ok(())
}

fn ask(client: &mut DataClient, question: &DemoQuestion) -> Result<()> {
    let begin = Instant::now();
    let (schema, batches) = match client.execute(question.sql) {
        Ok(StatementReply::Rows(rows)) => {
            (rows.schema, rows.batches.collect::<Result<Vec<_>, _>>())
        }
        Ok(StatementReply::Done(tag)) => bail!("{tag}: no rows"),
        Err(failure) => bail!("{}", failure.explain(question.sql)),
    };
    let batches = batches?;
    let time = begin.elapsed();
    let plotted = match question.show {
        AnswerDisplay::Plot => plot::render(&batches).ok(),
        AnswerDisplay::Table => None,
    };
    match plotted {
        Some(plot) => outln!("{plot}"),
        None => out!("{}", table::render(&schema, &batches, None)?.text),
    }
    let rows: usize = batches
        .iter()
        .map(arrow::array::RecordBatch::num_rows)
        .sum();
    let note = format!(
        "({} · {})",
        terminal::counted(rows as u64, "row"),
        terminal::span(time)
    );
    outln!("{}", styled(TextStyle::Dim, &note));
    Ok(())
}
