//! Reads the statements that define databases and tables.

use crate::duration::parse_fixed_ns;
use crate::error::{SqlError, SqlResult};
use crate::statement::{Change, ColumnKind, Command, OptionChanges};
use crate::types::{field_type, tag_type};
use crate::words::{name, target, word, words};
use datafusion::sql::sqlparser::ast::{DataType, Value};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use marigram_model::FieldType;

/// `CREATE DATABASE [IF NOT EXISTS] name`
pub fn create_database(parser: &mut Parser<'_>) -> SqlResult<Command> {
    words(parser, &["CREATE", "DATABASE"]);
    let if_not_exists = words(parser, &["IF", "NOT", "EXISTS"]);
    Ok(Command::CreateDatabase {
        name: name(parser)?,
        if_not_exists,
    })
}

/// `DROP DATABASE [IF EXISTS] name`
pub fn drop_database(parser: &mut Parser<'_>) -> SqlResult<Command> {
    words(parser, &["DROP", "DATABASE"]);
    let if_exists = words(parser, &["IF", "EXISTS"]);
    Ok(Command::DropDatabase {
        name: name(parser)?,
        if_exists,
    })
}

/// `DROP TABLE [IF EXISTS] name, …`
pub fn drop_table(parser: &mut Parser<'_>) -> SqlResult<Command> {
    words(parser, &["DROP", "TABLE"]);
    let if_exists = words(parser, &["IF", "EXISTS"]);
    let mut targets = vec![target(parser)?];
    while parser.consume_token(&Token::Comma) {
        targets.push(target(parser)?);
    }
    Ok(Command::DropTable { targets, if_exists })
}

/// `CREATE TABLE [IF NOT EXISTS] name (column type [TAG | FIELD], …) [WITH (setting = value, …)]`
pub fn create_table(parser: &mut Parser<'_>) -> SqlResult<Command> {
    words(parser, &["CREATE", "TABLE"]);
    let if_not_exists = words(parser, &["IF", "NOT", "EXISTS"]);
    let target = target(parser)?;
    if words(parser, &["AS"]) {
        return Err(SqlError::unsupported(
            "CREATE TABLE … AS is not supported; create the table, then INSERT INTO it",
        ));
    }
    parser.expect_token(&Token::LParen)?;
    let mut written = Vec::new();
    loop {
        written.push(column(parser)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    let options = if words(parser, &["WITH"]) {
        settings(parser)?
    } else {
        OptionChanges::default()
    };
    let columns = resolve(written)?;
    Ok(Command::CreateTable {
        target,
        columns,
        options,
        if_not_exists,
    })
}

/// `ALTER TABLE name ADD [COLUMN] [IF NOT EXISTS] column type [TAG | FIELD] | SET (…), …`
pub fn alter_table(parser: &mut Parser<'_>) -> SqlResult<Command> {
    words(parser, &["ALTER", "TABLE"]);
    let target = target(parser)?;
    let mut changes = Vec::new();
    loop {
        if word(parser, "ADD") {
            words(parser, &["COLUMN"]);
            let if_not_exists = words(parser, &["IF", "NOT", "EXISTS"]);
            let added = column(parser)?;
            let kind = added.kind()?;
            changes.push(Change::Add {
                name: added.name,
                kind,
                if_not_exists,
            });
        } else if word(parser, "SET") {
            changes.push(Change::Set(settings(parser)?));
        } else {
            let found = parser.peek_token();
            let expected = "ADD [COLUMN] name type [TAG | FIELD], or SET (setting = value)";
            return Ok(parser.expected(expected, found)?);
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    Ok(Command::AlterTable { target, changes })
}

/// A column as it is written.
struct Column {
    name: String,
    data_type: DataType,
    role: Option<Role>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Time,
    Tag,
    Field,
}

impl Column {
    fn kind(&self) -> SqlResult<ColumnKind> {
        match self.role {
            Some(Role::Time) => Ok(ColumnKind::Time),
            Some(Role::Tag) => Ok(ColumnKind::Tag(tag_type(&self.name, &self.data_type)?)),
            Some(Role::Field) | None => {
                Ok(ColumnKind::Field(field_type(&self.name, &self.data_type)?))
            }
        }
    }
}

fn column(parser: &mut Parser<'_>) -> SqlResult<Column> {
    let name = name(parser)?;
    let data_type = parser.parse_data_type()?;
    let mut role = None;
    loop {
        let found = if word(parser, "TAG") {
            Role::Tag
        } else if word(parser, "FIELD") {
            Role::Field
        } else if words(parser, &["TIME"]) || words(parser, &["TIME", "INDEX"]) {
            Role::Time
        } else if words(parser, &["NOT", "NULL"]) || word(parser, "NULL") {
            continue;
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
        return Ok(parser.expected("TAG, FIELD, a comma or ')'", found)?);
    }
    Ok(Column {
        name,
        data_type,
        role,
    })
}

/// Finds the time column: the one that says so, or else the TIMESTAMP column named `time` without
/// a role, or else the first TIMESTAMP column without a role.
fn resolve(mut written: Vec<Column>) -> SqlResult<Vec<(String, ColumnKind)>> {
    let declared = written
        .iter()
        .filter(|column| column.role == Some(Role::Time))
        .count();
    if declared > 1 {
        return Err(SqlError::invalid(
            "42P16",
            "a table has one time column; two are declared",
        ));
    }
    let is_time = |column: &Column| {
        column.role.is_none()
            && field_type(&column.name, &column.data_type).is_ok_and(|t| t == FieldType::Timestamp)
    };
    if declared == 0 {
        let place = written
            .iter()
            .position(|column| is_time(column) && column.name == "time")
            .or_else(|| written.iter().position(is_time));
        if let Some(place) = place {
            written[place].role = Some(Role::Time);
        }
    }
    let time = written
        .iter()
        .find(|column| column.role == Some(Role::Time));
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
        Some(_) => written
            .into_iter()
            .map(|column| Ok((column.name.clone(), column.kind()?)))
            .collect(),
    }
}

/// `(setting = value, …)`
fn settings(parser: &mut Parser<'_>) -> SqlResult<OptionChanges> {
    let mut changes = OptionChanges::default();
    parser.expect_token(&Token::LParen)?;
    loop {
        let key = name(parser)?;
        parser.expect_token(&Token::Eq)?;
        let value = setting_value(parser)?;
        let fixed = |text: &str| {
            parse_fixed_ns(text)
                .map_err(|reason| SqlError::named("22023", &key, format!("{key}: {reason}")))
        };
        match (key.as_str(), value) {
            ("ttl", None) => changes.ttl_ns = Some(None),
            ("ttl", Some(text))
                if ["none", "forever", "0"].contains(&text.to_lowercase().as_str()) =>
            {
                changes.ttl_ns = Some(None);
            }
            ("ttl", Some(text)) => changes.ttl_ns = Some(Some(fixed(&text)?)),
            ("partition", Some(text)) => changes.partition_ns = Some(fixed(&text)?),
            ("partition", None) => {
                return Err(SqlError::named(
                    "22023",
                    &key,
                    "partition needs a length of time",
                ));
            }
            _ => {
                return Err(SqlError::unknown(
                    "22023",
                    "table setting",
                    &key,
                    ["ttl", "partition"],
                ));
            }
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(changes)
}

fn setting_value(parser: &mut Parser<'_>) -> SqlResult<Option<String>> {
    if let Token::Word(word) = parser.peek_token().token
        && word.quote_style.is_none()
    {
        parser.next_token();
        return Ok((!word.value.eq_ignore_ascii_case("null")).then_some(word.value));
    }
    let found = parser.peek_token();
    match parser.parse_value()?.value {
        Value::Null => Ok(None),
        Value::SingleQuotedString(text) | Value::Number(text, _) => Ok(Some(text)),
        _ => Ok(parser.expected("a value like '30d'", found)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use marigram_model::{DAY_NS, TagType};

    fn columns(sql: &str) -> SqlResult<Vec<(String, ColumnKind)>> {
        match parse(sql)? {
            Command::CreateTable { columns, .. } => Ok(columns),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn roles_are_declared_or_found() {
        let found =
            columns("create table t (dev string tag, at timestamp, x double, n bigint field)");
        let expected = vec![
            ("dev".to_owned(), ColumnKind::Tag(TagType::String)),
            ("at".to_owned(), ColumnKind::Time),
            ("x".to_owned(), ColumnKind::Field(FieldType::F64)),
            ("n".to_owned(), ColumnKind::Field(FieldType::I64)),
        ];
        assert_eq!(found.unwrap(), expected);
        let named = columns("create table t (seen timestamp, time timestamp, x real)").unwrap();
        assert_eq!(named[0].1, ColumnKind::Field(FieldType::Timestamp));
        assert_eq!(named[1].1, ColumnKind::Time);
    }

    #[test]
    fn tables_without_a_time_or_with_odd_types_are_refused() {
        for sql in [
            "create table t (x double)",
            "create table t (time timestamp, x double tag)",
            "create table t (time timestamp, x point)",
            "create table t (time timestamp, x double tag field)",
            "create table t (time timestamp) with (tll = '3d')",
            "create table t (time timestamp) with (ttl = 'soon')",
            "create table t as select 1",
        ] {
            assert!(parse(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn settings_change_what_they_name() {
        let Command::AlterTable { changes, .. } =
            parse("alter table t set (ttl = '30d'), add column h real").unwrap()
        else {
            panic!("an alteration");
        };
        let set = OptionChanges {
            ttl_ns: Some(Some(30 * DAY_NS)),
            partition_ns: None,
        };
        let add = Change::Add {
            name: "h".into(),
            kind: ColumnKind::Field(FieldType::F32),
            if_not_exists: false,
        };
        assert_eq!(changes, [Change::Set(set), add]);
    }
}
