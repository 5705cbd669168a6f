//! Fast paths and rows give the same answers: random rows, in memory and in segments, and random
//! statements. All floats are multiples of an eighth, so that sums do not depend on their order.

mod support;

use std::fmt::Write as _;
use support::Harness;

/// A small random number generator (xorshift), so that a seed determines rows and statements.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

const SECOND: u64 = 1_000_000_000;
/// The times of the rows are below this many seconds.
const SECONDS: u64 = 4_000;

fn lines(chance: &mut Chance, count: usize) -> String {
    let mut lines = String::new();
    for _ in 0..count {
        let mut tags = String::new();
        for (key, values) in [("host", ["a", "b", "c"]), ("region", ["eu", "us", "eu"])] {
            if chance.happens(80) {
                _ = write!(tags, ",{key}={}", chance.pick(&values));
            }
        }
        let mut fields = vec![format!("n={}i", chance.below(9))];
        if chance.happens(80) {
            fields.push(format!("v={}", chance.below(400) as f64 / 8.0 - 20.0));
        }
        if chance.happens(70) {
            fields.push(format!("i={}i", chance.below(50) as i64 - 20));
        }
        if chance.happens(50) {
            fields.push(format!("s=\"{}\"", chance.pick(&["x", "y", ""])));
        }
        if chance.happens(50) {
            fields.push(format!("b={}", chance.pick(&["true", "false"])));
        }
        let table = chance.pick(&["cpu", "cpu", "cpu", "mem"]);
        // Coarse times, so that series share them.
        let time = chance.below(SECONDS) * SECOND;
        _ = writeln!(lines, "{table}{tags} {} {time}", fields.join(","));
    }
    lines
}

fn condition(chance: &mut Chance) -> String {
    let number = chance.below(40);
    match chance.below(9) {
        0 => format!("host = '{}'", chance.pick(&["a", "", "q"])),
        1 => format!("host != '{}'", chance.pick(&["a", ""])),
        2 => format!("region =~ /{}/", chance.pick(&["e", ".*", "x"])),
        3 => format!("v > {number}"),
        4 => format!("i <= {number}"),
        5 => "s = 'x'".to_owned(),
        6 => format!("(host = 'a' OR v < {number})"),
        7 => format!("v + i > {number}"),
        _ => "b = true".to_owned(),
    }
}

fn filter(chance: &mut Chance, needs_range: bool) -> String {
    let mut parts = Vec::new();
    if needs_range || chance.happens(40) {
        let start = chance.below(SECONDS);
        let end = start + 1 + chance.below(SECONDS);
        parts.push(format!("time >= {start}s AND time < {end}s"));
    }
    if chance.happens(40) {
        parts.push(condition(chance));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(" WHERE {}", parts.join(" AND "))
}

fn tail(chance: &mut Chance) -> String {
    let mut text = String::new();
    if chance.happens(35) {
        text.push_str(" ORDER BY time DESC");
    }
    if chance.happens(45) {
        _ = write!(text, " LIMIT {}", 1 + chance.below(4));
        if chance.happens(30) {
            _ = write!(text, " OFFSET {}", chance.below(4));
        }
    }
    text
}

fn function(chance: &mut Chance) -> String {
    let name = chance.pick(&[
        "count", "sum", "mean", "min", "max", "spread", "first", "last", "median", "stddev",
    ]);
    let field = chance.pick(&[
        "v",
        "v",
        "i",
        "n",
        "s",
        "b",
        "nothing",
        "v::integer",
        "host",
    ]);
    format!("{name}({field})")
}

fn group(chance: &mut Chance, by_time: bool) -> String {
    let mut parts = Vec::new();
    if by_time {
        let width = chance.pick(&["1m", "100s", "7m", "1h"]);
        let offset = chance.pick(&["", "", ", 10s", ", -7s", ", 3m"]);
        parts.push(format!("time({width}{offset})"));
    }
    if chance.happens(60) {
        parts.push(
            chance
                .pick(&["host", "region", "host, region", "*", "nothing"])
                .to_owned(),
        );
    }
    if parts.is_empty() {
        return String::new();
    }
    format!(" GROUP BY {}", parts.join(", "))
}

fn aggregated(chance: &mut Chance) -> String {
    let count = 1 + chance.below(3);
    let mut columns: Vec<String> = (0..count).map(|_| function(chance)).collect();
    let by_time = chance.happens(55);
    if chance.happens(10) {
        columns = vec![
            chance
                .pick(&["count(*)", "mean(*)", "last(*)", "max(*)"])
                .to_owned(),
        ];
    } else if by_time && chance.happens(15) {
        columns = vec![format!("derivative({})", function(chance))];
    } else if chance.happens(15) {
        columns = vec![format!("{} + {}", function(chance), function(chance))];
    }
    let fill = if by_time {
        chance.pick(&[
            "",
            " fill(none)",
            " fill(0)",
            " fill(previous)",
            " fill(linear)",
        ])
    } else {
        ""
    };
    let from = chance.pick(&["cpu", "cpu", "mem", "cpu, mem", "/.*/", "none"]);
    let limits = if chance.happens(10) { " SLIMIT 2" } else { "" };
    let zone = chance.pick(&["", "", "", " tz('Europe/Berlin')"]);
    format!(
        "SELECT {} FROM {from}{}{}{fill}{}{limits}{zone}",
        columns.join(", "),
        filter(chance, by_time),
        group(chance, by_time),
        tail(chance)
    )
}

fn selector(chance: &mut Chance) -> String {
    let name = chance.pick(&["first", "last", "min", "max"]);
    let field = chance.pick(&["v", "i"]);
    let more = chance.pick(&["", "", ", host", ", s, i", ", region"]);
    format!(
        "SELECT {name}({field}){more} FROM cpu{}{}{}",
        filter(chance, false),
        group(chance, false),
        tail(chance)
    )
}

fn raw(chance: &mut Chance) -> String {
    let columns = chance.pick(&["v", "v, i", "*", "v, host", "v + i", "s, b", "n"]);
    let from = chance.pick(&["cpu", "cpu", "mem", "cpu, mem"]);
    let limits = if chance.happens(10) { " SLIMIT 1" } else { "" };
    format!(
        "SELECT {columns} FROM {from}{}{}{}{limits}",
        filter(chance, false),
        group(chance, false),
        tail(chance)
    )
}

fn nested(chance: &mut Chance) -> String {
    let inner = match chance.below(3) {
        0 => {
            let group = chance.pick(&["", " GROUP BY host", " GROUP BY *"]);
            format!(
                "SELECT {} AS m, i FROM cpu{}{group}{}",
                chance.pick(&["v", "v", "v * 2", "i / i"]),
                filter(chance, false),
                tail(chance)
            )
        }
        1 => {
            let group = chance.pick(&["", ", host", ", host, region"]);
            format!(
                "SELECT {} AS m FROM cpu{} GROUP BY time(3m){group}",
                function(chance),
                filter(chance, true)
            )
        }
        _ => format!("SELECT {} AS m FROM cpu GROUP BY *", function(chance)),
    };
    let columns = chance.pick(&["m", "mean(m)", "count(m)", "max(m)", "m, host", "last(m)"]);
    if columns.contains("(m)") && chance.happens(40) {
        // The subquery inherits the groups of time.
        let (range, group) = (filter(chance, true), group(chance, true));
        return format!(
            "SELECT {columns} FROM ({inner}){range}{group}{}",
            tail(chance)
        );
    }
    let group = chance.pick(&["", "", " GROUP BY host", " GROUP BY region"]);
    format!("SELECT {columns} FROM ({inner}){group}{}", tail(chance))
}

async fn compare(seed: u64, rows_of_a_segment: usize, statements: usize) {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let harness = Harness::new();
    for _ in 0..3 {
        harness.write(&lines(&mut chance, rows_of_a_segment));
        harness.flush();
    }
    harness.write(&lines(&mut chance, rows_of_a_segment / 5));
    let mut wrong = String::new();
    let mut rows = 0;
    for _ in 0..statements {
        let statement = match chance.below(10) {
            0..5 => aggregated(&mut chance),
            5..7 => selector(&mut chance),
            7..9 => raw(&mut chance),
            _ => nested(&mut chance),
        };
        let (ours, plain) = (
            harness.ask(&statement).await,
            harness.ask_plainly(&statement).await,
        );
        rows += usize::from(plain.contains("values"));
        if ours != plain {
            _ = writeln!(
                wrong,
                "{statement}\n  fast  {ours:.600}\n  plain {plain:.600}"
            );
        }
    }
    assert!(
        rows * 3 > statements,
        "only {rows} statements have an answer"
    );
    assert!(wrong.is_empty(), "seed {seed}\n{wrong}");
}

#[tokio::test]
async fn fast_paths_give_the_answers_of_rows() {
    let seeds = std::env::var("MARIGRAM_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    for seed in 1..=seeds.unwrap_or(3) {
        compare(seed, 1_500, 250).await;
        // So few that tables are read as a whole.
        compare(seed, 40, 250).await;
    }
}
