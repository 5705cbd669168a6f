//! Looks for damage: in the file, between the tables and their definitions, and in rows.

use crate::catalog::ReferenceCatalog;
use crate::context::run;
use crate::definition::{ReferenceTable, ReferenceType};
use crate::error::Result;
use crate::foreign::check_orphans;
use crate::schema::physical_indexes;
use crate::value::INTEGER_DIGITS_MAX;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// What is wrong; one snapshot is checked.
pub(crate) fn verify(connection: &Connection) -> Result<Vec<String>> {
    run(connection, "BEGIN")?;
    let findings = check(connection);
    run(connection, "ROLLBACK")?;
    match findings {
        Err(error) if error.sqlstate == "XX001" => Ok(vec![error.message]),
        findings => findings,
    }
}

fn check(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut findings = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    findings.retain(|line| line != "ok");
    if !findings.is_empty() {
        return Ok(findings);
    }
    let catalog = ReferenceCatalog::load(connection)?;
    findings = differences(connection, &catalog)?;
    if findings.is_empty() {
        for table in catalog.all() {
            check_table(connection, &catalog, table, &mut findings)?;
        }
    }
    Ok(findings)
}

/// What there is in the file without a definition, and the other way round.
pub(crate) fn differences(
    connection: &Connection,
    catalog: &ReferenceCatalog,
) -> Result<Vec<String>> {
    let mut expected = BTreeSet::new();
    for table in catalog.all() {
        expected.insert(format!("t{}", table.id));
        let indexes = physical_indexes(table);
        expected.extend(indexes.iter().map(|index| index.name(table.id)));
    }
    let mut statement = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE name GLOB 't[0-9]*' OR name GLOB '[ki][0-9]*_*'",
    )?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<BTreeSet<_>>>()?;
    let missing = expected
        .difference(&names)
        .map(|name| format!("{name} is missing"));
    let unknown = names
        .difference(&expected)
        .map(|name| format!("{name} has no definition"));
    Ok(missing.chain(unknown).collect())
}

fn check_table(
    connection: &Connection,
    catalog: &ReferenceCatalog,
    table: &ReferenceTable,
    findings: &mut Vec<String>,
) -> Result<()> {
    let sql = format!(
        "SELECT name FROM pragma_table_info('t{}') WHERE name <> 'r'",
        table.id
    );
    let mut statement = connection.prepare(&sql)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<BTreeSet<_>>>()?;
    let expected: BTreeSet<_> = table
        .columns
        .iter()
        .map(|column| format!("c{}", column.id))
        .collect();
    let name = &table.name;
    if names != expected {
        findings.push(format!(
            "table \"{name}\" has other columns than its definition says"
        ));
        return Ok(());
    }
    for column in &table.columns {
        let mut allowed = stored_types(column.kind).to_owned();
        if column.is_nullable {
            allowed.push_str(", 'null'");
        }
        let sql = format!(
            "SELECT count(*) FROM t{} WHERE typeof(c{}) NOT IN ({allowed})",
            table.id, column.id
        );
        let wrong: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
        if wrong > 0 {
            let column = &column.name;
            findings.push(format!(
                "table \"{name}\" has {wrong} wrong values in \"{column}\""
            ));
        }
    }
    for key in &table.foreign_keys {
        if let Err(error) = check_orphans(connection, catalog, table, key, None) {
            findings.push(format!(
                "{error}: {}",
                error.detail.as_deref().unwrap_or_default()
            ));
        }
    }
    Ok(())
}

/// The types of SQLite as which a type is stored.
fn stored_types(kind: ReferenceType) -> &'static str {
    match kind {
        ReferenceType::Bool
        | ReferenceType::Int2
        | ReferenceType::Int4
        | ReferenceType::Int8
        | ReferenceType::Date
        | ReferenceType::Time
        | ReferenceType::Timestamp
        | ReferenceType::TimestampTz => "'integer'",
        ReferenceType::Float4 | ReferenceType::Float8 => "'real', 'text'",
        ReferenceType::Numeric { precision, .. } if precision <= INTEGER_DIGITS_MAX => "'integer'",
        ReferenceType::Numeric { .. } | ReferenceType::Interval | ReferenceType::Bytea => "'blob'",
        _ => "'text'",
    }
}
