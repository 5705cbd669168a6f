//! Parses the statements that define databases and tables.

pub(crate) mod columns;
pub(crate) mod constraints;
pub(crate) mod materialized_views;
pub(crate) mod query;

use crate::dialect::hypertable_settings::HypertableSettings;
use crate::dialect::identifiers::{accept_word, accept_words, parse_name, parse_target};
use crate::dialect::settings::{codec_clause, settings};
use crate::dialect::statement::{
    CodecChange, ColumnKind, Command, CreateTableAs, OptionChanges, TableAlteration,
};
use crate::dialect::types::field_type;
use crate::error::{SqlError, SqlResult};
use columns::{ColumnDefinition, ColumnRole};
use constraints::TableKey;
use datafusion::sql::sqlparser::ast::{DataType, Expr};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token};
use marigram_model::FieldType;

/// `CREATE DATABASE [IF NOT EXISTS] name`
pub(crate) fn create_database(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["CREATE", "DATABASE"]);
    let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let name = parse_name(parser)?;
    accept_words(parser, &["WITH"]);
    database_options(parser)?;
    Ok(Command::CreateDatabase {
        name,
        if_not_exists,
    })
}

/// The options of PostgreSQL that say what is true of every database here.
fn database_options(parser: &mut Parser<'_>) -> SqlResult<()> {
    const TRUE: [(&str, &[&str]); 2] = [
        ("ENCODING", &["utf8", "utf-8", "unicode"]),
        ("TEMPLATE", &["template0", "template1", "default"]),
    ];
    loop {
        let next = parser.peek_token();
        let Token::Word(option) = &next.token else {
            return Ok(());
        };
        let option = option.value.to_uppercase();
        parser.next_token();
        let _ = parser.consume_token(&Token::Eq);
        let found = parser.next_token();
        let value = match &found.token {
            Token::Word(word) => word.value.clone(),
            Token::SingleQuotedString(text) | Token::Number(text, _) => text.clone(),
            _ => return Ok(parser.expected("the end of the statement", next)?),
        };
        let known = TRUE.iter().find(|(known, _)| *known == option);
        if !known.is_some_and(|(_, values)| values.contains(&value.to_lowercase().as_str())) {
            let message = format!(
                "CREATE DATABASE … {option} {value} is not supported: databases have no owner, no \
                 limits, and texts in UTF-8 that are compared by their bytes"
            );
            return Err(SqlError::named("0A000", &option, message));
        }
    }
}

/// `DROP DATABASE [IF EXISTS] name`
pub(crate) fn drop_database(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["DROP", "DATABASE"]);
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    Ok(Command::DropDatabase {
        name: parse_name(parser)?,
        if_exists,
    })
}

/// `DROP TABLE [IF EXISTS] name, … [CASCADE | RESTRICT]`
pub(crate) fn drop_table(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["DROP", "TABLE"]);
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    let mut targets = vec![parse_target(parser)?];
    while parser.consume_token(&Token::Comma) {
        targets.push(parse_target(parser)?);
    }
    // Views that read a table of series keep it from being dropped, whatever the word.
    let cascades = accept_word(parser, "CASCADE");
    let _ = cascades || accept_word(parser, "RESTRICT");
    Ok(Command::DropTable {
        targets,
        if_exists,
        cascades,
    })
}

/// `CREATE TABLE [IF NOT EXISTS] name (column, …) [WITH (setting = value, …)]`, where a column is
/// `name type [TAG | FIELD] [ENCODING e] [COMPRESSION c]`; or `CREATE TABLE … AS`. `text` returns
/// the text between two locations of the statement.
pub(crate) fn create_table(
    parser: &mut Parser<'_>,
    text: impl Fn(Location, Location) -> String,
) -> SqlResult<Command> {
    accept_words(parser, &["CREATE", "TABLE"]);
    let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
    let target = parse_target(parser)?;
    if parser.peek_token().token != Token::LParen {
        let table = query::create_table_as(parser, target, text)?;
        return Ok(Command::CreateTableAs(CreateTableAs {
            if_not_exists,
            ..table
        }));
    }
    parser.expect_token(&Token::LParen)?;
    let (mut written, mut keys) = (Vec::new(), Vec::new());
    loop {
        match constraints::table_constraint(parser)? {
            Some(key) => keys.push(key),
            None => written.push(column(parser)?),
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    let (mut options, hypertable) = if accept_words(parser, &["WITH"]) {
        settings(parser)?
    } else {
        (OptionChanges::default(), None)
    };
    for clause in ["PARTITION", "INHERITS", "TABLESPACE", "ON", "USING", "OF"] {
        if accept_word(parser, clause) {
            let message = format!(
                "CREATE TABLE … {clause} is not supported; Marigram divides tables by time itself: \
                 WITH (partition = '7d')"
            );
            return Err(SqlError::named("0A000", clause, message));
        }
    }
    let hypertable = hypertable.unwrap_or_default();
    options.partition_ns = hypertable.partition_ns.or(options.partition_ns);
    let (columns, notices) = resolve(written, keys, hypertable)?;
    Ok(Command::CreateTable {
        target,
        columns,
        options,
        if_not_exists,
        notices,
    })
}

/// `ALTER TABLE [IF EXISTS] name ADD [COLUMN] [IF NOT EXISTS] column | ALTER [COLUMN] name SET … | SET (…) |
/// RENAME TO name | RENAME [COLUMN] name TO name | DROP [COLUMN] [IF EXISTS] name, …`
pub(crate) fn alter_table(parser: &mut Parser<'_>) -> SqlResult<Command> {
    accept_words(parser, &["ALTER", "TABLE"]);
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    accept_words(parser, &["ONLY"]);
    let target = parse_target(parser)?;
    let mut changes = Vec::new();
    loop {
        constraints::refuse_alteration(parser)?;
        if accept_word(parser, "ADD") {
            if let Some(TableKey { kind, columns }) = constraints::table_constraint(parser)? {
                changes.push(TableAlteration::Key { kind, columns });
                if !parser.consume_token(&Token::Comma) {
                    break;
                }
                continue;
            }
            accept_words(parser, &["COLUMN"]);
            let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
            let added = column(parser)?;
            if let Some(kind) = added.key {
                let message = format!("{kind} is not supported for a column that is added");
                return Err(SqlError::named("0A000", &added.name, message));
            }
            let kind = added.kind()?;
            changes.push(TableAlteration::Add {
                name: added.name,
                kind,
                if_not_exists,
            });
        } else if accept_word(parser, "ALTER") {
            accept_words(parser, &["COLUMN"]);
            changes.push(alter_column(parser)?);
        } else if accept_words(parser, &["OWNER", "TO"]) {
            parse_name(parser)?;
            changes.push(TableAlteration::Owner);
        } else if accept_word(parser, "SET") {
            let (set, hypertable) = settings(parser)?;
            if hypertable.is_none() || set != OptionChanges::default() {
                changes.push(TableAlteration::Set(set));
            }
            changes.extend(hypertable.map(TableAlteration::Hypertable));
        } else if accept_words(parser, &["RENAME", "TO"]) {
            changes.push(TableAlteration::Rename(parse_name(parser)?));
        } else if accept_word(parser, "RENAME") {
            accept_words(parser, &["COLUMN"]);
            let from = parse_name(parser)?;
            if !accept_word(parser, "TO") {
                let found = parser.peek_token();
                return Ok(parser.expected("TO and the column's new name", found)?);
            }
            changes.push(TableAlteration::RenameColumn(from, parse_name(parser)?));
        } else if accept_word(parser, "DROP") {
            accept_words(parser, &["COLUMN"]);
            let if_exists = accept_words(parser, &["IF", "EXISTS"]);
            let name = parse_name(parser)?;
            accept_words(parser, &["RESTRICT"]);
            changes.push(TableAlteration::Drop { name, if_exists });
        } else {
            let found = parser.peek_token();
            let expected = "ADD [COLUMN] name type [TAG | FIELD], DROP [COLUMN] name, RENAME TO \
                            name, RENAME [COLUMN] name TO name, ALTER [COLUMN] name SET ENCODING \
                            e, ALTER [COLUMN] name TYPE type, or SET (setting = value)";
            return Ok(parser.expected(expected, found)?);
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    Ok(Command::AlterTable {
        target,
        changes,
        if_exists,
    })
}

/// `name SET [ENCODING e] [COMPRESSION c] | name [SET DATA] TYPE type`
fn alter_column(parser: &mut Parser<'_>) -> SqlResult<TableAlteration> {
    let name = parse_name(parser)?;
    if accept_words(parser, &["TYPE"]) || accept_words(parser, &["SET", "DATA", "TYPE"]) {
        let written = parser.parse_data_type()?;
        if accept_word(parser, "USING") && !is_cast_to(&parser.parse_expr()?, &name, &written) {
            let message = format!(
                "USING may only be {name}::{written}: values are converted where they stay the same; \
                 for others, CREATE TABLE … AS SELECT the expression and the other columns, then \
                 rename both tables"
            );
            return Err(SqlError::named("0A000", "USING", message));
        }
        return Ok(TableAlteration::Type { name, written });
    }
    for (words, reason) in UNCHANGEABLE {
        if accept_words(parser, words) {
            let words = words.join(" ");
            let message = format!("ALTER COLUMN … {words} is not supported: {reason}");
            return Err(SqlError::named("0A000", &name, message));
        }
    }
    let mut change = CodecChange::default();
    if !accept_word(parser, "SET") || !codec_clause(parser, &mut change)? {
        let found = parser.peek_token();
        let expected = "SET ENCODING e, SET COMPRESSION c or TYPE type";
        return Ok(parser.expected(expected, found)?);
    }
    while codec_clause(parser, &mut change)? {}
    Ok(TableAlteration::Codec { name, change })
}

/// What PostgreSQL changes of a column, and why Marigram does not.
const UNCHANGEABLE: &[(&[&str], &str)] = &[
    (
        &["SET", "DEFAULT"],
        "a field that a row does not name is null; give the value in each INSERT",
    ),
    (&["DROP", "DEFAULT"], "columns have no defaults"),
    (&["SET", "NOT", "NULL"], "fields may always be null"),
    (&["DROP", "NOT", "NULL"], "fields may always be null"),
    (&["SET", "STATISTICS"], "statistics are kept of every page"),
    (
        &["SET", "STORAGE"],
        "ENCODING and COMPRESSION say how a field is stored",
    ),
    (
        &["ADD", "GENERATED"],
        "compute the value in the query, or in a view",
    ),
];

/// Whether an expression is a column, or a cast of it to a type.
pub(crate) fn is_cast_to(expr: &Expr, column: &str, to: &DataType) -> bool {
    match expr {
        Expr::Identifier(name) => match name.quote_style {
            Some(_) => name.value == column,
            None => name.value.eq_ignore_ascii_case(column),
        },
        Expr::Nested(expr) => is_cast_to(expr, column, to),
        Expr::Cast {
            expr, data_type, ..
        } => data_type == to && is_cast_to(expr, column, to),
        _ => false,
    }
}

fn column(parser: &mut Parser<'_>) -> SqlResult<ColumnDefinition> {
    let name = parse_name(parser)?;
    constraints::refuse_serial(parser, &name)?;
    let data_type = parser.parse_data_type()?;
    let (mut role, mut codec, mut key) = (None, CodecChange::default(), None);
    let mut is_required = false;
    loop {
        if codec_clause(parser, &mut codec)?
            || constraints::column_constraint(parser, &mut key, &mut is_required)?
        {
            continue;
        }
        let found = if accept_word(parser, "TAG") {
            ColumnRole::Tag
        } else if accept_word(parser, "FIELD") {
            ColumnRole::Field
        } else if accept_words(parser, &["TIME"]) || accept_words(parser, &["TIME", "INDEX"]) {
            ColumnRole::Time
        } else {
            break;
        };
        if role.is_some_and(|role| role != found) {
            return Err(SqlError::named(
                "42601",
                &name,
                format!("column '{name}' is given two roles; it is one of TAG and FIELD"),
            ));
        }
        role = Some(found);
    }
    if !matches!(
        parser.peek_token().token,
        Token::Comma | Token::RParen | Token::SemiColon | Token::EOF
    ) {
        let found = parser.peek_token();
        let expected = "TAG, FIELD, ENCODING, COMPRESSION, a comma or ')'";
        return Ok(parser.expected(expected, found)?);
    }
    Ok(ColumnDefinition {
        name,
        data_type,
        role,
        codec,
        key,
        is_required,
    })
}

/// The names of columns, and what they hold.
type NamedKinds = Vec<(String, ColumnKind)>;

/// Finds the time column: the one that is declared as such, or else the TIMESTAMP column named
/// `time` without a role, or else the first TIMESTAMP column without a role. Returns the columns, and
/// what the client is told of keys.
fn resolve(
    mut written: Vec<ColumnDefinition>,
    mut keys: Vec<TableKey>,
    hypertable: HypertableSettings,
) -> SqlResult<(NamedKinds, Vec<String>)> {
    if let Some(name) = &hypertable.time {
        named_column(&mut written, name)?
            .role
            .get_or_insert(ColumnRole::Time);
    }
    keys.extend(written.iter().filter_map(|column| {
        Some(TableKey {
            kind: column.key?,
            columns: vec![column.name.clone()],
        })
    }));
    let declared = written
        .iter()
        .filter(|column| column.role == Some(ColumnRole::Time))
        .count();
    if declared > 1 {
        return Err(SqlError::invalid(
            "42P16",
            "a table has one time column; two are declared",
        ));
    }
    let is_time = |column: &ColumnDefinition| {
        column.role.is_none()
            && field_type(&column.name, &column.data_type).is_ok_and(|t| t == FieldType::Timestamp)
    };
    if declared == 0 {
        let place = written
            .iter()
            .position(|column| is_time(column) && column.name == "time")
            .or_else(|| written.iter().position(is_time));
        if let Some(place) = place {
            written[place].role = Some(ColumnRole::Time);
        }
    }
    tag_devices(&mut written, &keys, &hypertable.tags)?;
    let time = written
        .iter()
        .find(|column| column.role == Some(ColumnRole::Time));
    match time {
        None => Err(SqlError::invalid(
            "42P16",
            "a table needs a time column: add 'time TIMESTAMP'",
        )),
        Some(time)
            if field_type(&time.name, &time.data_type)
                .is_ok_and(|kind| kind != FieldType::Timestamp) =>
        {
            let message = format!("the time column '{}' must be a TIMESTAMP", time.name);
            Err(SqlError::named("42P16", &time.name, message))
        }
        Some(_) => {
            let mut notices = constraints::apply_keys(&mut written, &keys)?;
            notices.extend(constraints::not_null_notice(&written));
            notices.extend(hypertable.notices);
            let columns = written.into_iter();
            let columns = columns.map(|column| Ok((column.name.clone(), column.kind()?)));
            Ok((columns.collect::<SqlResult<_>>()?, notices))
        }
    }
}

/// The column of this name.
fn named_column<'a>(
    written: &'a mut [ColumnDefinition],
    name: &str,
) -> SqlResult<&'a mut ColumnDefinition> {
    let Some(place) = written.iter().position(|column| column.name == name) else {
        let known = written.iter().map(|column| column.name.as_str());
        return Err(SqlError::unknown("42703", "column", name, known));
    };
    Ok(&mut written[place])
}

/// Makes the columns that identify devices tags, unless a key with the time says which these are.
fn tag_devices(
    written: &mut [ColumnDefinition],
    keys: &[TableKey],
    devices: &[String],
) -> SqlResult<()> {
    let is_time = |column: &&ColumnDefinition| column.role == Some(ColumnRole::Time);
    let time = written
        .iter()
        .find(is_time)
        .map(|column| column.name.clone());
    let has_key = keys
        .iter()
        .any(|key| time.as_ref().is_some_and(|time| key.columns.contains(time)));
    for name in devices {
        let column = named_column(written, name)?;
        if !has_key {
            column.role.get_or_insert(ColumnRole::Tag);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;
    use crate::dialect::statement::ReferenceStatement;
    use marigram_model::{ColumnCodec, Compressor, DAY_NS, Encoding, TagType};

    fn field(kind: FieldType) -> ColumnKind {
        ColumnKind::Field(kind, ColumnCodec::default())
    }

    fn columns(sql: &str) -> SqlResult<Vec<(String, ColumnKind)>> {
        match parse(sql)? {
            Command::CreateTable { columns, .. } => Ok(columns),
            other => panic!("{other:?}"),
        }
    }

    /// The changes of a table of series.
    fn changes(sql: &str) -> Vec<TableAlteration> {
        let Ok(Command::Reference(ReferenceStatement::Change { series, .. })) = parse(sql) else {
            panic!("{sql}: {:?}", parse(sql));
        };
        match series.map(|command| *command) {
            Ok(Command::AlterTable { changes, .. }) => changes,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn roles_are_declared_or_found() {
        let found =
            columns("create table t (dev string tag, at timestamp, x double, n bigint field)");
        let expected = vec![
            ("dev".to_owned(), ColumnKind::Tag(TagType::String)),
            ("at".to_owned(), ColumnKind::Time),
            ("x".to_owned(), field(FieldType::F64)),
            ("n".to_owned(), field(FieldType::I64)),
        ];
        assert_eq!(found.unwrap(), expected);
        let named = columns("create table t (seen timestamp, time timestamp, x real)").unwrap();
        assert_eq!(named[0].1, field(FieldType::Timestamp));
        assert_eq!(named[1].1, ColumnKind::Time);
    }

    #[test]
    fn tables_without_a_time_or_with_odd_types_are_refused() {
        for sql in [
            "create table t (x double field)",
            "create table t (time timestamp, x double tag)",
            "create table t (time timestamp, x point)",
            "create table t (time timestamp, x double tag field)",
            "create table t (time timestamp) with (tll = '3d')",
            "create table t (time timestamp) with (ttl = 'soon')",
            "create table t with (tags = 1 as select 1",
            "alter table t rename column a b",
            "alter table t drop",
            "create table t (time timestamp, x double encoding gorila)",
            "create table t (time timestamp, x double encoding)",
            "create table t (time timestamp, x string encoding alp)",
            "create table t (time timestamp, d string tag encoding plain)",
            "create table t (time timestamp encoding plain)",
            "create table t (time timestamp, x double) with (page_size = 'big')",
            "create table t (time timestamp, x double) with (cold_codec = 'gorilla')",
            "create table t (time timestamp, x double) with (encoding = null)",
            "alter table t alter column x",
            "alter table t alter column x set",
        ] {
            assert!(parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn codecs_stand_before_and_after_roles() {
        let sql = "create table t (time timestamp, a double encoding alp field compression 'lz4', \
                   b bigint field compressor zstd encoding delta, c text encoding auto)";
        let found = columns(sql).unwrap();
        let codec = |at: usize| match found[at].1 {
            ColumnKind::Field(_, codec) => (codec.encoding, codec.compressor),
            other => panic!("{other:?}"),
        };
        assert_eq!(codec(1), (Some(Encoding::Alp), Some(Compressor::Lz4)));
        assert_eq!(codec(2), (Some(Encoding::Delta), Some(Compressor::Zstd)));
        assert_eq!(codec(3), (None, None));
        let changes =
            changes("alter table t alter column a set encoding auto, alter b set compression gzip");
        let change = |name: &str, change| TableAlteration::Codec {
            name: name.to_owned(),
            change,
        };
        let first = CodecChange {
            encoding: Some(None),
            compressor: None,
        };
        let second = CodecChange {
            encoding: None,
            compressor: Some(Some(Compressor::Gzip)),
        };
        assert_eq!(changes, [change("a", first), change("b", second)]);
    }

    #[test]
    fn settings_change_what_they_name() {
        let changes = changes("alter table t set (ttl = '30d'), add column h real");
        let set = OptionChanges {
            ttl_ns: Some(Some(30 * DAY_NS)),
            ..OptionChanges::default()
        };
        let add = TableAlteration::Add {
            name: "h".into(),
            kind: field(FieldType::F32),
            if_not_exists: false,
        };
        assert_eq!(changes, [TableAlteration::Set(set), add]);
    }
}
