//! Whatever comes in: no panic, no overflow of the stack, no hang.

use marigram_influxql::ast::Statement;
use marigram_influxql::columns::column_names;
use marigram_influxql::privileges::required_privileges;
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::validate::{SelectAnalysis, analyze, check_statement};
use marigram_influxql::{NESTING_MAX, UtcOnly, parse_query, redact_passwords};

/// Random numbers from a fixed seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// Does with a text all that can be done with one, and checks what holds for all.
fn exercise(text: &str) {
    redact_passwords(text);
    let query = match parse_query(text) {
        Ok(query) => query,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let Some(position) = error.position() {
                assert!(position.line >= 1 && position.char >= 1 && position.byte <= text.len());
            }
            return;
        }
    };
    assert_eq!(query.statements.len(), query.spans.len());
    for (statement, span) in query.statements.iter().zip(&query.spans) {
        assert!(
            text.get(span.start..span.end).is_some(),
            "{text:?}: {span:?}"
        );
        assert_eq!(statement, &statement.clone());
        let _ = (statement.to_string(), required_privileges(statement));
        let _ = check_statement(statement);
        let context = TimeContext {
            now_ns: i64::MAX,
            time_zone: None,
            zones: &UtcOnly,
        };
        if let Statement::Select(select) | Statement::Explain { select, .. } = statement
            && let Ok(analysis) = analyze(select, &context)
        {
            names(&analysis);
        }
    }
}

fn names(analysis: &SelectAnalysis) {
    let columns = column_names(&analysis.fields, Some(&analysis.time_column), false);
    assert!(columns.len() > analysis.fields.len());
    analysis.subqueries.iter().for_each(names);
}

fn seeds() -> Vec<&'static str> {
    let tables = [
        include_str!("statements/admin.txt"),
        include_str!("statements/compile.txt"),
        include_str!("statements/errors.txt"),
        include_str!("statements/select.txt"),
        include_str!("statements/show.txt"),
        include_str!("statements/where.txt"),
    ];
    let lines = tables.into_iter().flat_map(str::lines);
    lines
        .filter(|line| !line.starts_with(['#', ' ']) && !line.is_empty())
        .collect()
}

#[test]
fn random_bytes_are_read_or_refused() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.below(64))
            .map(|_| random.below(256) as u8)
            .collect();
        exercise(&String::from_utf8_lossy(&bytes));
        let signs = b"'\"/\\$.:;,()*+-=~!<>%&|^ 0aZ_\n\r\t\0[]{}?# ";
        let text: String = bytes
            .iter()
            .map(|b| signs[usize::from(*b) % signs.len()] as char)
            .collect();
        exercise(&text);
    }
}

#[test]
fn a_text_ends_at_its_first_nul() {
    let text = "SHOW USERS \0éSHOW";
    let query = parse_query(text).expect("a query");
    assert_eq!((query.spans[0].start, query.spans[0].end), (0, 10));
    exercise(text);
    exercise("SELECT v\0é");
}

#[test]
fn mutated_statements_are_read_or_refused() {
    let seeds = seeds();
    let mut random = Random(2);
    for _ in 0..50_000 {
        let mut text: Vec<char> = seeds[random.below(seeds.len())].chars().collect();
        for _ in 0..=random.below(4) {
            let other: Vec<char> = seeds[random.below(seeds.len())].chars().collect();
            let (at, from) = (random.below(text.len() + 1), random.below(other.len()));
            let to = from + random.below(other.len() - from) + 1;
            match random.below(4) {
                0 => text.truncate(at),
                1 => drop(text.drain(at.min(text.len() / 2)..at)),
                2 => drop(text.splice(at..at, other[from..to].iter().copied())),
                _ if random.below(20) == 0 => text.insert(at, '\0'),
                _ => {
                    let end = (at + to - from).min(text.len());
                    drop(text.splice(at..end, other[from..to].iter().copied()));
                }
            }
        }
        exercise(&text.iter().collect::<String>());
    }
}

/// `middle` in `depth` pairs of `open` and `close`.
fn nested(open: &str, middle: &str, close: &str, depth: usize) -> String {
    format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_has_a_limit() {
    let deep: [fn(usize) -> String; 4] = [
        |depth| format!("SELECT {} FROM m", nested("(", "v", ")", depth)),
        |depth| format!("SELECT {} FROM m", nested("abs(", "v", ")", depth)),
        |depth| {
            format!(
                "SELECT v FROM m WHERE {}",
                nested("-(1 + ", "v", ") * 2", depth)
            )
        },
        |depth| {
            format!(
                "SELECT v FROM {}",
                nested("(SELECT v FROM ", "m", ")", depth)
            )
        },
    ];
    for statement in deep {
        exercise(&statement(NESTING_MAX));
        assert!(parse_query(&statement(NESTING_MAX)).is_ok());
        let error = parse_query(&statement(NESTING_MAX + 1)).expect_err("too deep");
        let text = error.to_string();
        assert!(
            text.starts_with("query is nested more than 200 levels deep at line 1"),
            "{text}"
        );
        exercise(&statement(100_000));
        exercise(&statement(100_000)[..100_000]);
    }
}

#[test]
fn long_statements_are_read() {
    for (begin, again, end) in [
        ("SELECT v FROM m WHERE a = 1", " OR a = 1", ""),
        ("SELECT v", " + v", " FROM m"),
        ("SELECT v", ", v", " FROM m"),
        ("SELECT v FROM m", ", m", ""),
        ("SELECT v FROM m GROUP BY a", ", a", ""),
        ("SELECT v FROM m", " -- c\n", ""),
        ("SELECT v FROM m", ";SHOW USERS", ""),
        ("SHOW TAG VALUES WITH KEY IN (a", ", a", ")"),
        ("SELECT v FROM m WHERE a =~ /a", "|a", "/"),
        ("SELECT v FROM m WHERE a = '", "\\'", "'"),
        ("SELECT v FROM m WHERE ", "- ", "a = 1"),
    ] {
        exercise(&format!("{begin}{}{end}", again.repeat(20_000)));
    }
}
