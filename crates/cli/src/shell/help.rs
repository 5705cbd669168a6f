//! What `\?` and `\h` show.

/// The commands of the shell.
pub(super) const COMMANDS: &str = r"  \d, \dt       tables            \d TABLE     columns of a table, and its key
  \dm           materialized views  \du          users
  \l            databases         \c DATABASE  use a database
  \conninfo     where the data is
  \g            run the statement before it, or the last one again; \g FILE to a file
  \gx           the same, expanded
  \p            show the statement that has begun, or the last one
  \r            forget the statement that has begun
  \e            edit the last statement in $EDITOR
  \i FILE       run the statements and commands of a file; \ir FILE: beside the running one
  \o FILE       answers go to a file; \o to the terminal again
  \echo TEXT    show a text; \warn TEXT on stderr
  \! COMMAND    run a command of the system
  \set ON_ERROR_STOP on|off   whether a script stops at an error
  \x [on|off|auto]  rows one under the other, a line for each value
  \timing [on|off]  show times    \limit N     rows shown of an answer (0: all)
  \format F     table, csv, tsv, json, ndjson
  \plot [SQL]   draw the last or this query: a time, numbers, a line for each tag
  \copy TABLE|(QUERY) to 'FILE' [(format csv, header, delimiter ';', null '')]
  \copy TABLE from 'FILE' [(format csv, header, delimiter ';', null 'x', tz 'Europe/Berlin')]
  \pager [on|off]   long answers through $PAGER
  \h [NAME]     statements, or the form of one
  \?, \q        help, leave

  Ctrl-C cancels a statement or clears the line. Tab completes words, names and values of tags.
  Statements end with ;
  SHOW TABLES, SHOW COLUMNS FROM t, SHOW SERIES FROM t, SHOW SEGMENTS, EXPLAIN ANALYZE SELECT …";

/// Statements and their forms.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "ALTER TABLE",
        "ALTER TABLE name ADD [COLUMN] column type, ALTER [COLUMN] column TYPE type, RENAME COLUMN column TO \
         name, DROP COLUMN column, RENAME TO name, SET (setting = 'value', …)",
    ),
    (
        "COPY",
        "COPY table [(column, …)] | (query) TO | FROM STDOUT | STDIN [WITH (option, …)]",
    ),
    ("CREATE DATABASE", "CREATE DATABASE [IF NOT EXISTS] name"),
    (
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [WITH (option = 'value', …)] AS query",
    ),
    (
        "CREATE TABLE",
        "CREATE TABLE [IF NOT EXISTS] name (time TIMESTAMP, column type [TAG], …) [WITH (option = 'value', …)]",
    ),
    (
        "CREATE TABLE AS",
        "CREATE TABLE [IF NOT EXISTS] name [WITH (tags = 'column, …')] AS query",
    ),
    (
        "CREATE USER",
        "CREATE USER name WITH PASSWORD 'text' [SUPERUSER]",
    ),
    ("CREATE VIEW", "CREATE [OR REPLACE] VIEW name AS query"),
    ("DELETE", "DELETE FROM table [WHERE condition]"),
    ("DROP DATABASE", "DROP DATABASE [IF EXISTS] name"),
    ("DROP TABLE", "DROP TABLE [IF EXISTS] name"),
    ("EXPLAIN", "EXPLAIN [ANALYZE] statement"),
    (
        "GRANT",
        "GRANT READ, WRITE ON database TO name | GRANT role TO name",
    ),
    (
        "INSERT",
        "INSERT INTO table [(column, …)] VALUES (value, …), … | query",
    ),
    (
        "REVOKE",
        "REVOKE READ, WRITE ON database FROM name | REVOKE role FROM name",
    ),
    (
        "SELECT",
        "SELECT [DISTINCT] expression [AS name], … FROM table [WHERE condition] [GROUP BY expression, …] \
      [HAVING condition] [ORDER BY expression [DESC], …] [LIMIT count] [OFFSET count]",
    ),
    ("SET", "SET [SESSION] name = value | SET TIME ZONE 'zone'"),
    (
        "SHOW",
        "SHOW DATABASES | TABLES | COLUMNS FROM table | SERIES FROM table | SEGMENTS | name",
    ),
];

/// The statements, or the form of those whose names begin with `name`.
pub(super) fn statements(name: &str) -> String {
    let wanted = name.trim_end_matches(';').trim().to_uppercase();
    if wanted.is_empty() {
        let names: Vec<&str> = STATEMENTS.iter().map(|(name, _)| *name).collect();
        return format!("  {}\n  \\h NAME shows the form of one", names.join("\n  "));
    }
    let is_wanted = |known: &&(&str, &str)| known.0.starts_with(&wanted);
    let forms: Vec<String> = STATEMENTS
        .iter()
        .filter(is_wanted)
        .map(|(name, form)| format!("{name}\n  {form}"))
        .collect();
    if forms.is_empty() {
        return format!("there is no help for '{name}'; \\h lists the statements");
    }
    forms.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_by_the_begin_of_their_names() {
        assert!(statements("").contains("CREATE TABLE AS"));
        let found = statements("create table;");
        assert!(
            found.contains("CREATE TABLE [IF") && found.contains("AS query"),
            "{found}"
        );
        assert!(statements("frobnicate").contains("no help"));
    }
}
