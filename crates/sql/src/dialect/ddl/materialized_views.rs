//! Parses the statements about materialized views.

use crate::dialect::identifiers::{accept_words, parse_name, parse_target};
use crate::dialect::settings::{SETTINGS, set, value};
use crate::dialect::statement::{Command, OptionChanges, ViewOptions};
use crate::dialect::timescale::settings::accept_key;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token};
use marigram_functions::duration::parse_fixed_or_zero_ns;

/// `CREATE MATERIALIZED VIEW [IF NOT EXISTS] name WITH (continuous, …) AS SELECT … [WITH [NO] DATA]`.
/// `text` returns the text between two locations of the statement.
pub(crate) fn create(
    parser: &mut Parser<'_>,
    text: impl Fn(Location, Location) -> String,
) -> SqlResult<Command> {
    accept_words(parser, &["CREATE", "MATERIALIZED", "VIEW"]);
    let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let target = parse_target(parser)?;
    let mut options = ViewOptions::default();
    if accept_words(parser, &["WITH"]) {
        read(parser, &mut options)?;
    }
    if options.continuous != Some(true) {
        return Err(SqlError::unsupported(
            "a materialized view is kept up to date: write CREATE MATERIALIZED VIEW … WITH \
             (continuous) AS SELECT …; for rows that stay as they are, CREATE TABLE and INSERT INTO \
             … SELECT",
        ));
    }
    if !accept_words(parser, &["AS"]) {
        let found = parser.peek_token();
        return Ok(parser.expected("AS SELECT …", found)?);
    }
    let (start, end, with_data) = query_span(parser);
    Ok(Command::CreateView {
        target,
        if_not_exists,
        options,
        query: text(start, end),
        with_data,
    })
}

/// The start and end of the query at the end of a statement, and whether `WITH NO DATA` is absent.
pub(super) fn query_span(parser: &mut Parser<'_>) -> (Location, Location, bool) {
    let start = parser.peek_token().span.start;
    let mut end = start;
    loop {
        if let Some(data) = data_clause(parser) {
            return (start, end, data);
        }
        let next = parser.peek_token();
        if matches!(next.token, Token::EOF | Token::SemiColon) {
            return (start, end, true);
        }
        parser.next_token();
        end = next.span.end;
    }
}

/// `WITH DATA` or `WITH NO DATA` at the end of a statement.
fn data_clause(parser: &mut Parser<'_>) -> Option<bool> {
    let ends = |parser: &Parser<'_>, at| {
        matches!(
            parser.peek_nth_token(at).token,
            Token::EOF | Token::SemiColon
        )
    };
    if ends(parser, 2) && accept_words(parser, &["WITH", "DATA"]) {
        return Some(true);
    }
    (ends(parser, 3) && accept_words(parser, &["WITH", "NO", "DATA"])).then_some(false)
}

/// `ALTER MATERIALIZED VIEW name SET (setting = value, …) | RENAME TO name`
pub(crate) fn alter(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["ALTER", "MATERIALIZED", "VIEW"]);
    let target = parse_target(parser)?;
    let mut options = ViewOptions::default();
    if accept_words(parser, &["RENAME", "TO"]) {
        let to = parse_name(parser)?;
        return Ok(Command::RenameView { target, to });
    }
    if !accept_words(parser, &["SET"]) {
        let found = parser.peek_token();
        return Ok(parser.expected("SET (setting = value), or RENAME TO", found)?);
    }
    read(parser, &mut options)?;
    Ok(Command::AlterView { target, options })
}

/// `DROP MATERIALIZED VIEW [IF EXISTS] name, …`
pub(crate) fn drop(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["DROP", "MATERIALIZED", "VIEW"]);
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    let mut targets = vec![parse_target(parser)?];
    while parser.consume_token(&Token::Comma) {
        targets.push(parse_target(parser)?);
    }
    // Nothing depends on a materialized view, whatever the word.
    let _ = accept_words(parser, &["CASCADE"]) || accept_words(parser, &["RESTRICT"]);
    Ok(Command::DropView { targets, if_exists })
}

/// `REFRESH MATERIALIZED VIEW name`
pub(crate) fn refresh(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["REFRESH", "MATERIALIZED", "VIEW"]);
    accept_words(parser, &["CONCURRENTLY"]);
    Ok(Command::RefreshView(parse_target(parser)?))
}

/// `(continuous, setting = value, …)`
fn read(parser: &mut Parser<'_>, options: &mut ViewOptions) -> SqlResult<()> {
    const OWN: [&str; 4] = ["continuous", "refresh", "lag", "retention"];
    parser.expect_token(&Token::LParen)?;
    loop {
        // The notation of TimescaleDB.
        let foreign = accept_key(parser)?;
        let is_foreign = foreign.is_some();
        let key = match foreign {
            Some(key) => key,
            None => parse_name(parser)?,
        };
        let given = if parser.consume_token(&Token::Eq) {
            value(parser)?
        } else if key == "continuous" || is_foreign {
            Some("true".to_owned())
        } else {
            let found = parser.peek_token();
            return Ok(parser.expected("= and a value", found)?);
        };
        if is_foreign && !OWN.contains(&key.as_str()) {
            foreign_setting(&key, given, options)?;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
            continue;
        }
        let length = |text: Option<String>| {
            let text = text.unwrap_or_default();
            parse_fixed_or_zero_ns(&text)
                .map_err(|reason| SqlError::named("22023", &key, format!("{key}: {reason}")))
        };
        match key.as_str() {
            "continuous" => options.continuous = Some(is_true(&key, given)?),
            "refresh" => {
                let every = length(given)?;
                if every <= 0 {
                    let message = "refresh is a positive length of time, as in '10s'";
                    return Err(SqlError::named("22023", &key, message));
                }
                options.refresh_ns = Some(every);
            }
            "lag" => options.lag_ns = Some(length(given)?),
            "retention" => set(&mut options.table, "ttl", given)?,
            other if SETTINGS.contains(&other) || other == "compressor" => {
                set(&mut options.table, other, given)?;
            }
            other => {
                let known = OWN.into_iter().chain(SETTINGS);
                return Err(SqlError::unknown("22023", "view setting", other, known));
            }
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    if options.table != OptionChanges::default() && options.table.identity.is_some() {
        let message = "a materialized view's series are those of its groups";
        return Err(SqlError::named("0A000", "series_identity", message));
    }
    Ok(())
}

/// A setting of TimescaleDB that does nothing here.
fn foreign_setting(key: &str, given: Option<String>, options: &mut ViewOptions) -> SqlResult<()> {
    const KNOWN: [&str; 13] = [
        "continuous",
        "materialized_only",
        "create_group_indexes",
        "finalized",
        "invalidate_using",
        "chunk_interval",
        "compress",
        "columnstore",
        "enable_columnstore",
        "segmentby",
        "orderby",
        "compress_segmentby",
        "compress_orderby",
    ];
    if !KNOWN.contains(&key) {
        return Err(SqlError::unknown("22023", "view setting", key, KNOWN));
    }
    if key == "materialized_only" && is_true(key, given)? {
        options.notices.push(
            "timescaledb.materialized_only: a view is always exact, so queries also read rows that it \
             does not cover yet"
                .to_owned(),
        );
    }
    Ok(())
}

fn is_true(key: &str, given: Option<String>) -> SqlResult<bool> {
    match given.unwrap_or_default().to_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Ok(true),
        "false" | "off" | "0" | "no" => Ok(false),
        other => {
            let message = format!("{key} is true or false, not '{other}'");
            Err(SqlError::named("22023", key, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;
    use marigram_model::DAY_NS;

    #[test]
    fn a_view_keeps_its_query_as_it_is_written() {
        let sql = "create materialized view if not exists plant.\"V\" with (continuous, \
                   refresh = '1m', lag='5s', retention = '30d', page_size = 4096) as\n select \
                   time_bucket('1h', time) as b, 'with data' from t -- why\n where x > 'ü' group by \
                   b with no data ;";
        let Command::CreateView {
            target,
            if_not_exists,
            options,
            query,
            with_data,
        } = parse(sql).unwrap()
        else {
            panic!("a view");
        };
        assert_eq!(
            (target.table.as_str(), if_not_exists, with_data),
            ("V", true, false)
        );
        assert_eq!(target.database.as_deref(), Some("plant"));
        assert!(query.starts_with("select time_bucket"), "{query}");
        assert!(query.ends_with("group by b"), "{query}");
        assert!(query.contains("-- why\n where x > 'ü'"), "{query}");
        assert_eq!(options.refresh_ns, Some(60_000_000_000));
        assert_eq!(options.lag_ns, Some(5_000_000_000));
        assert_eq!(options.table.ttl_ns, Some(Some(30 * DAY_NS)));
        assert_eq!(options.table.page_bytes, Some(4096));
        let as_elsewhere = "CREATE MATERIALIZED VIEW v WITH (timescaledb.continuous = true) AS \
                            SELECT 1 WITH DATA";
        let Command::CreateView { query, .. } = parse(as_elsewhere).unwrap() else {
            panic!("a view");
        };
        assert_eq!(query, "SELECT 1");
    }

    #[test]
    fn a_view_may_have_no_lag() {
        for zero in ["'0s'", "'0 minutes'"] {
            let sql =
                format!("create materialized view v with (continuous, lag = {zero}) as select 1");
            let Command::CreateView { options, .. } = parse(&sql).unwrap() else {
                panic!("a view");
            };
            assert_eq!(options.lag_ns, Some(0));
            let sql = format!("alter materialized view v set (lag = {zero})");
            let Command::AlterView { options, .. } = parse(&sql).unwrap() else {
                panic!("a change");
            };
            assert_eq!(options.lag_ns, Some(0));
        }
        for wrong in ["'-5 seconds'", "'1 month'", "null", "'soon'"] {
            let sql = format!("alter materialized view v set (lag = {wrong})");
            assert!(parse(&sql).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_view_is_refused() {
        for sql in [
            "create materialized view v as select 1",
            "create materialized view v with (continuous = false) as select 1",
            "create materialized view v with (continuous)",
            "create materialized view v with (continuous, refresh = '0s') as select 1",
            "create materialized view v with (continuous, refres = '1s') as select 1",
            "create materialized view v with (continuous, series_identity = 'sha256') as select 1",
            "alter materialized view v",
            "alter materialized view v set (lag)",
            "drop materialized view",
            "refresh materialized view v w",
        ] {
            assert!(parse(sql).is_err(), "{sql}");
        }
    }
}
