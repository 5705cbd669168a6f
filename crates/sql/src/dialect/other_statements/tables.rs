//! Which statements of PostgreSQL are refused, which name what cannot exist, and what to do instead.

/// The words with which a statement begins, without `OR REPLACE`, and what to do instead. The first
/// entry that matches is the one.
pub(super) const REFUSED: &[(&[&str], &str)] = &[
    (
        &["CREATE", "FUNCTION"],
        "write the expression into the queries, or into a view",
    ),
    (
        &["CREATE", "PROCEDURE"],
        "send its statements from the client, one by one",
    ),
    (
        &["CREATE", "AGGREGATE"],
        "the guide of functions lists the aggregates",
    ),
    (
        &["CREATE", "TRIGGER"],
        "let the client do it when it writes; aggregates are kept by CREATE MATERIALIZED VIEW … WITH (continuous)",
    ),
    (
        &["CREATE", "CONSTRAINT", "TRIGGER"],
        "let the client check rows before it writes them",
    ),
    (
        &["CREATE", "EVENT", "TRIGGER"],
        "the audit log records changes of tables",
    ),
    (
        &["CREATE", "RULE"],
        "let the client write to the table that it means",
    ),
    (
        &["CREATE", "SEQUENCE"],
        "rows need no number: their tags and their time identify them",
    ),
    (
        &["CREATE", "TYPE"],
        "use the types of fields and TEXT; a tag with few values costs as little as an enum",
    ),
    (
        &["CREATE", "DOMAIN"],
        "use the type itself, and let the client check the values",
    ),
    (
        &["CREATE", "SCHEMA"],
        "CREATE DATABASE makes a space for tables, and database.table names a table in it",
    ),
    (
        &["CREATE", "UNLOGGED"],
        "acknowledged rows are always durable: write CREATE TABLE",
    ),
    (
        &["CREATE", "TEMP"],
        "use WITH in the query, or CREATE TABLE and DROP TABLE",
    ),
    (
        &["CREATE", "TEMPORARY"],
        "use WITH in the query, or CREATE TABLE and DROP TABLE",
    ),
    (
        &["CREATE", "GLOBAL"],
        "use WITH in the query, or CREATE TABLE and DROP TABLE",
    ),
    (
        &["CREATE", "LOCAL"],
        "use WITH in the query, or CREATE TABLE and DROP TABLE",
    ),
    (
        &["CREATE", "RECURSIVE"],
        "write WITH RECURSIVE in the query of a view",
    ),
    (
        &["CREATE", "FOREIGN"],
        "import the rows with COPY or `marigram import`",
    ),
    (
        &["CREATE", "SERVER"],
        "import the rows with COPY or `marigram import`",
    ),
    (
        &["CREATE", "POLICY"],
        "GRANT gives users rights to databases",
    ),
    (
        &["CREATE", "PUBLICATION"],
        "clients read changes by time: SELECT … WHERE time > the last one",
    ),
    (
        &["CREATE", "SUBSCRIPTION"],
        "send the rows with COPY, HTTP or `marigram import`",
    ),
    (
        &["CREATE", "TABLESPACE"],
        "`marigram serve --data` names the one place of all tables",
    ),
    (
        &["CREATE", "STATISTICS"],
        "statistics are kept of every page, without a statement",
    ),
    (
        &["CREATE", "GROUP"],
        "CREATE ROLE makes a role for several users",
    ),
    (
        &["ALTER", "DATABASE"],
        "SET changes a session, and the configuration file all of them; a database keeps its name",
    ),
    (&["ALTER", "SYSTEM"], "set it in the configuration file"),
    (
        &["ALTER", "DEFAULT"],
        "GRANT … ON DATABASE covers the tables to come",
    ),
    (
        &["ALTER", "SCHEMA"],
        "a database has the one schema public, which has no owner",
    ),
    (
        &["ALTER", "INDEX"],
        "ALTER TABLE t RENAME CONSTRAINT a TO b renames an index of a reference table",
    ),
    (
        &["COMMENT", "ON"],
        "keep descriptions in the names of columns, or in a table of their own",
    ),
    (
        &["SECURITY", "LABEL"],
        "GRANT gives users rights to databases",
    ),
    (
        &["LOCK"],
        "there are no locks of tables: readers see a snapshot, and a row replaces the one with the same tags and time",
    ),
    (
        &["LISTEN"],
        "ask again by time: SELECT … WHERE time > the last one",
    ),
    (
        &["NOTIFY"],
        "clients ask again by time: SELECT … WHERE time > the last one",
    ),
    (
        &["DO"],
        "there is no PL/pgSQL; send the statements from the client, one by one",
    ),
    (
        &["CALL"],
        "there are no procedures; send the statements from the client, one by one",
    ),
    (
        &["MERGE"],
        "INSERT the rows: a row replaces the one with the same tags and time",
    ),
    (
        &["IMPORT", "FOREIGN"],
        "import the rows with COPY or `marigram import`",
    ),
    (&["LOAD"], "there are no modules to load"),
    (
        &["REASSIGN"],
        "tables have no owners; GRANT gives users rights to databases",
    ),
    (
        &["DROP", "OWNED"],
        "tables have no owners; REVOKE takes rights away",
    ),
];

/// Kinds of objects that Marigram does not have: the words of the statement, the kind as PostgreSQL calls
/// it, and the SQLSTATE of one that does not exist.
pub(super) const ABSENT: &[(&[&str], &str, &str)] = &[
    (&["DROP", "ACCESS", "METHOD"], "access method", "42704"),
    (&["DROP", "AGGREGATE"], "aggregate", "42883"),
    (&["DROP", "COLLATION"], "collation", "42704"),
    (&["DROP", "DOMAIN"], "type", "42704"),
    (&["DROP", "EVENT", "TRIGGER"], "event trigger", "42704"),
    (&["DROP", "EXTENSION"], "extension", "42704"),
    (&["DROP", "FOREIGN", "TABLE"], "foreign table", "42P01"),
    (&["DROP", "FUNCTION"], "function", "42883"),
    (&["DROP", "LANGUAGE"], "language", "42704"),
    (&["DROP", "POLICY"], "policy", "42704"),
    (&["DROP", "PROCEDURE"], "procedure", "42883"),
    (&["DROP", "PUBLICATION"], "publication", "42704"),
    (&["DROP", "ROUTINE"], "routine", "42883"),
    (&["DROP", "RULE"], "rule", "42704"),
    (&["DROP", "SCHEMA"], "schema", "3F000"),
    (&["DROP", "SEQUENCE"], "sequence", "42P01"),
    (&["DROP", "SERVER"], "server", "42704"),
    (&["DROP", "STATISTICS"], "statistics object", "42704"),
    (&["DROP", "SUBSCRIPTION"], "subscription", "42704"),
    (&["DROP", "TABLESPACE"], "tablespace", "42704"),
    (&["DROP", "TRIGGER"], "trigger", "42704"),
    (&["DROP", "TYPE"], "type", "42704"),
    (&["ALTER", "SEQUENCE"], "sequence", "42P01"),
    (&["ALTER", "FUNCTION"], "function", "42883"),
    (&["ALTER", "PROCEDURE"], "procedure", "42883"),
    (&["ALTER", "TYPE"], "type", "42704"),
    (&["ALTER", "DOMAIN"], "type", "42704"),
    (&["ALTER", "TRIGGER"], "trigger", "42704"),
    (&["ALTER", "POLICY"], "policy", "42704"),
];

/// The command tags of the statements of [`ABSENT`].
pub(super) const TAGS: &[&str] = &[
    "DROP ACCESS METHOD",
    "DROP AGGREGATE",
    "DROP COLLATION",
    "DROP DOMAIN",
    "DROP EVENT TRIGGER",
    "DROP EXTENSION",
    "DROP FOREIGN TABLE",
    "DROP FUNCTION",
    "DROP LANGUAGE",
    "DROP POLICY",
    "DROP PROCEDURE",
    "DROP PUBLICATION",
    "DROP ROUTINE",
    "DROP RULE",
    "DROP SCHEMA",
    "DROP SEQUENCE",
    "DROP SERVER",
    "DROP STATISTICS",
    "DROP SUBSCRIPTION",
    "DROP TABLESPACE",
    "DROP TRIGGER",
    "DROP TYPE",
    "ALTER SEQUENCE",
    "ALTER FUNCTION",
    "ALTER PROCEDURE",
    "ALTER TYPE",
    "ALTER DOMAIN",
    "ALTER TRIGGER",
    "ALTER POLICY",
];
