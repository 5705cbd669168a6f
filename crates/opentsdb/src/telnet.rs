//! The lines of the telnet protocol.

use crate::error::PutFault;
use crate::point::{DataPoint, check_names, parse_long, parse_value, time_ms};

/// The commands, as `help` lists them.
pub const TELNET_COMMANDS: &str = "auth dropcaches exit help put stats version";

/// Whether a connection that begins with this byte speaks HTTP. Methods of HTTP are upper case,
/// commands are lower case.
pub const fn is_http(first: u8) -> bool {
    first.is_ascii_uppercase()
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub enum TelnetCommand {
    /// `put METRIC TIME VALUE TAG=VALUE…`: a point, or what is wrong with it.
    Put(Result<DataPoint, PutFault>),
    /// `auth USER PASSWORD`, also with `basic` before the user.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// `auth TOKEN`.
    Token(String),
    /// `version`.
    Version,
    /// `stats`.
    Stats,
    /// `help`.
    Help,
    /// `exit`.
    Exit,
    /// `dropcaches`.
    DropCaches,
    /// An empty line.
    Nothing,
    /// Anything else, by its first word.
    Unknown(String),
}

impl TelnetCommand {
    /// Reads a line, without its end. Bytes that are not UTF-8 are refused with the names that they
    /// stand in.
    pub fn parse(line: &[u8]) -> Self {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        match word {
            "" => Self::Nothing,
            "put" => Self::Put(put(rest)),
            "auth" => auth(rest.trim()),
            "version" => Self::Version,
            "stats" => Self::Stats,
            "help" => Self::Help,
            "exit" => Self::Exit,
            "dropcaches" => Self::DropCaches,
            other => Self::Unknown(other.chars().take(32).collect()),
        }
    }
}

fn auth(rest: &str) -> TelnetCommand {
    let rest = rest.strip_prefix("basic ").map_or(rest, str::trim_start);
    match rest.split_once(' ') {
        Some((user, password)) => TelnetCommand::Password {
            user: user.to_owned(),
            password: password.to_owned(),
        },
        None => TelnetCommand::Token(rest.to_owned()),
    }
}

fn put(rest: &str) -> Result<DataPoint, PutFault> {
    let illegal = |message: String| PutFault::IllegalArgument(message);
    let mut words = rest.split_ascii_whitespace();
    let (Some(metric), Some(time), Some(value), Some(_)) = (
        words.next(),
        words.next(),
        words.next(),
        words.clone().next(),
    ) else {
        let count = rest.split_ascii_whitespace().count();
        return Err(illegal(format!(
            "not enough arguments (need least 4, got {count})"
        )));
    };
    let number = match time.split_once('.') {
        // Seconds with milliseconds behind a point.
        Some((seconds, rest)) if (1..=3).contains(&rest.len()) => {
            parse_long(&format!("{seconds}{rest:0<3}"))?
        }
        _ => parse_long(time)?,
    };
    let time_ms = time_ms(number).ok_or_else(|| illegal(format!("invalid timestamp: {number}")))?;
    let mut tags: Vec<(String, String)> = Vec::new();
    for word in words {
        let pair = word.split_once('=');
        let is_pair =
            |key: &str, text: &str| !key.is_empty() && !text.is_empty() && !text.contains('=');
        let Some((key, text)) = pair.filter(|(key, text)| is_pair(key, text)) else {
            let shown: String = word.chars().take(100).collect();
            return Err(illegal(format!("invalid tag: {shown}")));
        };
        tags.push((key.to_owned(), text.to_owned()));
    }
    tags.sort();
    tags.dedup();
    let repeated = tags.windows(2).find(|pair| match pair {
        [(one, _), (other, _)] => one == other,
        _ => false,
    });
    if let Some([(key, first), (_, second)]) = repeated {
        return Err(illegal(format!(
            "duplicate tag: {key:.100}={second:.100}, tags={{{key:.100}={first:.100}}}"
        )));
    }
    check_names(metric, &tags)?;
    Ok(DataPoint {
        metric: metric.to_owned(),
        time_ms,
        value: parse_value(value)?,
        tags,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(line: &str) -> String {
        match TelnetCommand::parse(line.as_bytes()) {
            TelnetCommand::Put(Err(PutFault::IllegalArgument(text))) => {
                format!("illegal argument: {text}")
            }
            TelnetCommand::Put(Err(PutFault::InvalidValue(text))) => {
                format!("invalid value: {text}")
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_point_has_a_metric_a_time_a_value_and_tags() {
        let line = b"put sys.cpu.user 1356998400.250 42.5 host=web01  cpu=0\r";
        let TelnetCommand::Put(Ok(point)) = TelnetCommand::parse(line) else {
            panic!("it is a point");
        };
        assert_eq!((point.metric.as_str(), point.value), ("sys.cpu.user", 42.5));
        assert_eq!(point.time_ms, 1_356_998_400_250);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(point.tags, [pair("cpu", "0"), pair("host", "web01")]);
    }

    #[test]
    fn faults_are_told_as_opentsdb_tells_them() {
        for (line, expected) in [
            (
                "put",
                "illegal argument: not enough arguments (need least 4, got 0)",
            ),
            (
                "put m 1 2",
                "illegal argument: not enough arguments (need least 4, got 3)",
            ),
            (
                "put m notatime 42 host=web01",
                "invalid value: Invalid character 'n' in notatime",
            ),
            (
                "put m 0 42 host=web01",
                "illegal argument: invalid timestamp: 0",
            ),
            (
                "put m 1 4 a=b%",
                "illegal argument: Invalid tag value with key [a] (\"b%\"): illegal character: %",
            ),
            (
                "put m 1 9223372036854775808 a=b",
                "invalid value: Overflow in 9223372036854775808",
            ),
            (
                "put m 1 4x host=web01",
                "invalid value: Invalid character 'x' in 4x",
            ),
            (
                "put m 1 4.x host=web01",
                "invalid value: For input string: \"4.x\"",
            ),
            ("put m 1 4 host", "illegal argument: invalid tag: host"),
            ("put m 1 4 host=", "illegal argument: invalid tag: host="),
            (
                "put m 1 4 a=b a=c",
                "illegal argument: duplicate tag: a=c, tags={a=b}",
            ),
            (
                "put m%n 1 4 a=b",
                "illegal argument: Invalid metric name (\"m%n\"): illegal character: %",
            ),
            ("put m 1 4 a=b=c", "illegal argument: invalid tag: a=b=c"),
        ] {
            assert_eq!(fault(line), expected, "{line}");
        }
    }

    #[test]
    fn parts_of_a_second_are_milliseconds() {
        let time = |time: &str| {
            let line = format!("put m {time} 1 a=b");
            match TelnetCommand::parse(line.as_bytes()) {
                TelnetCommand::Put(point) => point.ok().map(|point| point.time_ms),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(time("1356998400.5"), Some(1_356_998_400_500));
        assert_eq!(time("1356998400.025"), Some(1_356_998_400_025));
        assert_eq!(time("1356998400.0255"), None);
        assert_eq!(time("1356998400."), None);
    }

    #[test]
    fn commands_are_their_first_words() {
        let parse = |line: &str| TelnetCommand::parse(line.as_bytes());
        assert_eq!(parse("version"), TelnetCommand::Version);
        assert_eq!(parse("stats\r"), TelnetCommand::Stats);
        assert_eq!(parse("  "), TelnetCommand::Nothing);
        assert_eq!(parse("putt x"), TelnetCommand::Unknown("putt".into()));
        assert_eq!(parse("auth mgt_x"), TelnetCommand::Token("mgt_x".into()));
        let password = TelnetCommand::Password {
            user: "ann".into(),
            password: "correct horse".into(),
        };
        assert_eq!(parse("auth ann correct horse"), password);
        assert_eq!(parse("auth basic ann correct horse"), password);
        assert!(is_http(b'G') && !is_http(b'p') && !is_http(0x16));
    }

    proptest! {
        #[test]
        fn any_line_is_a_command(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            TelnetCommand::parse(&line);
            TelnetCommand::parse(&[b"put ", line.as_slice()].concat());
            TelnetCommand::parse(&[b"put m 1 ", line.as_slice()].concat());
        }

        #[test]
        fn points_come_back(
            metric in "[a-zA-Z0-9._/-]{1,20}",
            time in 1_i64..9_223_372_036_854,
            value in -1e9_f64..1e9,
            tags in proptest::collection::btree_map("[a-s]{1,5}", "[a-z0-9.]{1,9}", 1..5),
        ) {
            let pairs: Vec<String> = tags.iter().map(|(key, text)| format!("{key}={text}")).collect();
            let line = format!("put {metric} {time} {value:?} {}", pairs.join(" "));
            let TelnetCommand::Put(Ok(point)) = TelnetCommand::parse(line.as_bytes()) else {
                panic!("{line}");
            };
            prop_assert_eq!(point.metric, metric);
            prop_assert_eq!(point.value, value);
            prop_assert_eq!(point.tags, tags.into_iter().collect::<Vec<_>>());
        }
    }
}
