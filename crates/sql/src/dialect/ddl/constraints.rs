//! Reads the constraints of PostgreSQL that stand in `CREATE TABLE` and `ALTER TABLE`.
//!
//! The tags and the time of a table identify its rows, so a key of exactly these columns is true of
//! every table, and is accepted. Marigram checks no other constraint, and refuses to seem to.

use super::columns::{ColumnDefinition, ColumnRole};
use crate::dialect::identifiers::{accept_word, accept_words, parse_name};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// A primary or unique key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableKey {
    /// `PRIMARY KEY` or `UNIQUE`.
    pub kind: &'static str,
    /// Its columns.
    pub columns: Vec<String>,
}

/// The words of the constraints that are refused, and what to do instead.
const REFUSED: [(&str, &str); 8] = [
    (
        "REFERENCES",
        "a tag may name a row of another table, and queries JOIN it",
    ),
    (
        "FOREIGN KEY",
        "a tag may name a row of another table, and queries JOIN it",
    ),
    ("CHECK", "let the client check rows before it writes them"),
    ("EXCLUDE", "let the client check rows before it writes them"),
    (
        "DEFAULT",
        "a field that a row does not name is null; give the value in each INSERT, as in VALUES (now(), …)",
    ),
    ("GENERATED", "compute the value in the query, or in a view"),
    (
        "COLLATE",
        "texts are compared by their bytes, as with COLLATE \"C\"",
    ),
    (
        "STORAGE",
        "ENCODING and COMPRESSION say how a field is stored",
    ),
];

fn refused(word: &str) -> SqlError {
    let instead = REFUSED.iter().find(|(known, _)| *known == word);
    let instead = instead.map_or("leave it out", |(_, instead)| instead);
    let message = format!("{word} is not supported; {instead}");
    SqlError::named("0A000", word, message)
}

fn next_is(parser: &Parser<'_>, at: usize, word: &str) -> bool {
    matches!(&parser.peek_nth_token(at).token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Reads a constraint of the table; `None` if a column follows.
///
/// # Errors
/// If Marigram does not check such a constraint.
pub(crate) fn table_constraint(parser: &mut Parser<'_>) -> SqlResult<Option<TableKey>> {
    const KINDS: [&str; 5] = ["PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE"];
    let is_named =
        next_is(parser, 0, "CONSTRAINT") && KINDS.iter().any(|kind| next_is(parser, 2, kind));
    if is_named {
        parser.next_token();
        parse_name(parser)?;
    }
    let is_list = parser.peek_nth_token(1).token == Token::LParen;
    if accept_words(parser, &["PRIMARY", "KEY"]) {
        return key(parser, "PRIMARY KEY").map(Some);
    }
    let is_unique = is_list || is_named || next_is(parser, 1, "NULLS");
    if is_unique && accept_word(parser, "UNIQUE") {
        let _ = accept_words(parser, &["NULLS", "NOT", "DISTINCT"])
            || accept_words(parser, &["NULLS", "DISTINCT"]);
        return key(parser, "UNIQUE").map(Some);
    }
    if next_is(parser, 0, "FOREIGN") && next_is(parser, 1, "KEY") {
        return Err(refused("FOREIGN KEY"));
    }
    for word in ["CHECK", "EXCLUDE"] {
        let is_there = is_named || is_list || next_is(parser, 1, "USING");
        if is_there && next_is(parser, 0, word) {
            return Err(refused(word));
        }
    }
    if next_is(parser, 0, "LIKE") {
        let message = "LIKE is not supported; write CREATE TABLE a AS SELECT * FROM b LIMIT 0";
        return Err(SqlError::named("0A000", "LIKE", message));
    }
    Ok(None)
}

/// `(column, …)` and what PostgreSQL allows after it.
fn key(parser: &mut Parser<'_>, kind: &'static str) -> SqlResult<TableKey> {
    parser.expect_token(&Token::LParen)?;
    let mut columns = Vec::new();
    loop {
        columns.push(parse_name(parser)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    deferral(parser);
    Ok(TableKey { kind, columns })
}

/// When a constraint is checked: Marigram's always holds.
fn deferral(parser: &mut Parser<'_>) {
    while accept_words(parser, &["NOT", "DEFERRABLE"])
        || accept_words(parser, &["DEFERRABLE"])
        || accept_words(parser, &["INITIALLY", "DEFERRED"])
        || accept_words(parser, &["INITIALLY", "IMMEDIATE"])
    {}
}

/// Reads a constraint of a column: the key that it declares, or that it has a value in each row;
/// `false` if none follows.
///
/// # Errors
/// If Marigram does not check such a constraint.
pub(crate) fn column_constraint(
    parser: &mut Parser<'_>,
    key: &mut Option<&'static str>,
    is_required: &mut bool,
) -> SqlResult<bool> {
    if next_is(parser, 0, "CONSTRAINT") {
        parser.next_token();
        parse_name(parser)?;
    }
    if accept_words(parser, &["PRIMARY", "KEY"]) {
        *key = Some("PRIMARY KEY");
    } else if accept_word(parser, "UNIQUE") {
        key.get_or_insert("UNIQUE");
    } else if accept_words(parser, &["NOT", "NULL"]) {
        *is_required = true;
    } else if accept_words(parser, &["DEFAULT", "NULL"]) || accept_words(parser, &["NULL"]) {
        // This is what columns are anyway.
    } else if let Some((word, _)) = REFUSED.iter().find(|(word, _)| next_is(parser, 0, word)) {
        return Err(refused(word));
    } else {
        return Ok(false);
    }
    deferral(parser);
    Ok(true)
}

/// The beginnings of changes of PostgreSQL, and what to do instead.
const ALTERATIONS: &[(&[&str], &str)] = &[
    (
        &["DROP", "CONSTRAINT"],
        "the tags and the time of a table are its key, which stays",
    ),
    (
        &["RENAME", "CONSTRAINT"],
        "the key of a table has the name of the table",
    ),
    (
        &["VALIDATE", "CONSTRAINT"],
        "the key of a table always holds",
    ),
    (
        &["SET", "SCHEMA"],
        "a database has the one schema public; CREATE TABLE other.t AS SELECT copies a table",
    ),
    (
        &["SET", "TABLESPACE"],
        "`marigram serve --data` names the one place of all tables",
    ),
    (&["SET", "UNLOGGED"], "acknowledged rows are always durable"),
    (&["SET", "LOGGED"], "acknowledged rows are always durable"),
    (
        &["ENABLE"],
        "there are no triggers and no policies of rows; GRANT gives users rights to databases",
    ),
    (
        &["DISABLE"],
        "there are no triggers and no policies of rows; GRANT gives users rights to databases",
    ),
    (
        &["CLUSTER", "ON"],
        "rows are always sorted by series and time",
    ),
    (
        &["REPLICA", "IDENTITY"],
        "clients read changes by time: SELECT … WHERE time > the last one",
    ),
    (
        &["ATTACH", "PARTITION"],
        "tables are divided by time: SET (partition = '7d')",
    ),
    (
        &["DETACH", "PARTITION"],
        "tables are divided by time; DELETE FROM t WHERE time < … removes old rows",
    ),
    (&["INHERIT"], "tables do not inherit; a view may UNION them"),
    (&["NO", "INHERIT"], "tables do not inherit"),
    (&["RESET"], "SET (setting = NULL) gives back the default"),
];

/// Refuses a change of `ALTER TABLE` that Marigram does not have.
///
/// # Errors
/// Says what to do instead.
pub(crate) fn refuse_alteration(parser: &Parser<'_>) -> SqlResult<()> {
    let is_there = |words: &[&str]| (0..).zip(words).all(|(at, word)| next_is(parser, at, word));
    match ALTERATIONS.iter().find(|(words, _)| is_there(words)) {
        None => Ok(()),
        Some((words, instead)) => {
            let message = format!(
                "ALTER TABLE … {} is not supported; {instead}",
                words.join(" ")
            );
            Err(SqlError::named("0A000", words[0], message))
        }
    }
}

/// Refuses the types of PostgreSQL that number rows.
///
/// # Errors
/// Says what identifies a row.
pub(crate) fn refuse_serial(parser: &Parser<'_>, column: &str) -> SqlResult<()> {
    const SERIAL: [&str; 6] = [
        "SERIAL",
        "BIGSERIAL",
        "SMALLSERIAL",
        "SERIAL4",
        "SERIAL8",
        "SERIAL2",
    ];
    match SERIAL.iter().find(|word| next_is(parser, 0, word)) {
        None => Ok(()),
        Some(word) => {
            let message = format!(
                "column '{column}': {word} is not supported: rows need no number, since their tags and \
                 their time identify them; leave the column out, or write BIGINT and give the numbers"
            );
            Err(SqlError::named("0A000", word, message))
        }
    }
}

/// Gives the columns of a key the role TAG, if no column has it; returns what the client is told.
///
/// # Errors
/// If the key is not the time and the tags.
pub(super) fn apply_keys(
    columns: &mut [ColumnDefinition],
    keys: &[TableKey],
) -> SqlResult<Vec<String>> {
    let is_tag = |column: &ColumnDefinition| column.role == Some(ColumnRole::Tag);
    let is_time = |column: &ColumnDefinition| column.role == Some(ColumnRole::Time);
    let mut notices = Vec::new();
    for key in keys {
        let missing = key
            .columns
            .iter()
            .find(|name| !columns.iter().any(|column| column.name == **name));
        if let Some(name) = missing {
            let known = columns.iter().map(|column| column.name.as_str());
            return Err(SqlError::unknown("42703", "column", name, known));
        }
        let has_time = columns
            .iter()
            .any(|column| is_time(column) && key.columns.contains(&column.name));
        if has_time && !columns.iter().any(is_tag) {
            for column in columns.iter_mut() {
                if column.role.is_none() && key.columns.contains(&column.name) {
                    column.role = Some(ColumnRole::Tag);
                }
            }
        }
        let is_identity = |column: &ColumnDefinition| is_tag(column) || is_time(column);
        let identity = columns.iter().filter(|column| is_identity(column));
        let identity: Vec<&str> = identity.map(|column| column.name.as_str()).collect();
        check(key.kind, &key.columns, &identity)?;
        notices.push(format!(
            "a row replaces the one with the same {}, as {} says",
            identity.join(", "),
            key.kind
        ));
    }
    notices.dedup();
    Ok(notices)
}

/// What a client is told of fields that it declares NOT NULL. The time is never NULL, and a tag
/// without a value is a series of its own.
pub(super) fn not_null_notice(columns: &[ColumnDefinition]) -> Option<String> {
    let is_field =
        |column: &&ColumnDefinition| matches!(column.role, None | Some(ColumnRole::Field));
    let fields = columns.iter().filter(is_field);
    let fields = fields.filter(|column| column.is_required);
    let fields: Vec<&str> = fields.map(|column| column.name.as_str()).collect();
    (!fields.is_empty()).then(|| {
        format!(
            "NOT NULL is not checked: rows may have no value in {}",
            fields.join(", ")
        )
    })
}

/// Requires that a key consists of the columns that identify a row: the tags and the time.
///
/// # Errors
/// Says which these are.
pub(crate) fn check(kind: &str, columns: &[String], identity: &[&str]) -> SqlResult<()> {
    let is_same = columns.len() == identity.len()
        && identity
            .iter()
            .all(|name| columns.iter().any(|column| column == name));
    if is_same {
        return Ok(());
    }
    let message = format!(
        "{kind} ({}) is not supported: the tags and the time identify a row, here {}; give the role TAG \
         to the columns that distinguish rows with the same time (name TEXT TAG), or name the time in \
         the key",
        columns.join(", "),
        identity.join(", ")
    );
    Err(SqlError::invalid("0A000", message))
}

#[cfg(test)]
mod tests {
    use crate::dialect::parse::parse;
    use crate::dialect::statement::{ColumnKind, Command};

    fn tags(sql: &str) -> Vec<String> {
        let Ok(Command::CreateTable { columns, .. }) = parse(sql) else {
            panic!("{sql}: {:?}", parse(sql));
        };
        let tags = columns.into_iter();
        tags.filter(|(_, kind)| matches!(kind, ColumnKind::Tag(_)))
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn a_key_of_time_and_tags_makes_tags() {
        for (sql, expected) in [
            (
                "create table t (time timestamptz not null, dev text not null, v double precision, \
                 constraint t_pkey primary key (dev, time))",
                vec!["dev"],
            ),
            (
                "create table t (time timestamp, dev text tag, site text tag, unique (time, site, dev))",
                vec!["dev", "site"],
            ),
            (
                "create table t (time timestamp primary key, v real)",
                vec![],
            ),
        ] {
            assert_eq!(tags(sql), expected, "{sql}");
        }
    }

    #[test]
    fn columns_may_have_the_names_of_constraints() {
        let sql = "create table t (time timestamp, unique_id text tag, checked boolean, \
                   constraints text, primary_site text tag)";
        assert_eq!(tags(sql), ["unique_id", "primary_site"]);
    }

    #[test]
    fn other_constraints_are_refused() {
        for (sql, words) in [
            (
                "create table t (time timestamp, dev text tag, id bigint primary key)",
                "identify a row, here time",
            ),
            (
                "create table t (time timestamp, dev text tag, id serial)",
                "no number",
            ),
            (
                "create table t (time timestamp, v real field check (v > 0))",
                "CHECK is not supported",
            ),
            (
                "create table t (time timestamp, v real field, check (v > 0))",
                "CHECK is not supported",
            ),
            (
                "create table t (time timestamp default now(), dev text tag)",
                "DEFAULT is not supported",
            ),
            (
                "create table t (time timestamp, d text tag references r (x))",
                "REFERENCES is not supported",
            ),
            (
                "create table t (time timestamp, d text tag, foreign key (d) references r)",
                "FOREIGN KEY is not supported",
            ),
            (
                "create table t (time timestamp, dev text tag, n bigint generated always as identity)",
                "GENERATED is not supported",
            ),
            ("create table t (like r)", "LIKE is not supported"),
        ] {
            let error = parse(sql).expect_err(sql).into_service(sql);
            assert_eq!(error.sqlstate(), "0A000", "{sql}: {error}");
            assert!(error.to_string().contains(words), "{sql}: {error}");
        }
    }
}
