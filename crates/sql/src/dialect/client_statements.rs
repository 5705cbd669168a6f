//! Statements that drivers send by themselves and that need features of PostgreSQL that Marigram
//! lacks, with their replacements.

/// The beginning of a driver's statement, and its replacement.
const KNOWN: [(&str, &str); 1] = [(
    // asyncpg asks for the types that it does not know, and for the types of which they consist.
    // Marigram has only arrays of simple types. Of arrays of OIDs, asyncpg only knows oid[], which
    // servers report for lists of unsigned numbers.
    "with recursive typeinfo_tree(",
    "SELECT t.oid AS oid, n.nspname AS ns, t.typname AS name, t.typtype AS kind, \
     NULL::int AS basetype, t.typelem AS elemtype, e.typdelim AS elemdelim, \
     NULL::int AS range_subtype, NULL::text AS attrtypoids, NULL::text AS attrnames, \
     wanted.depth AS depth, NULL::text AS basetype_name, e.typname AS elemtype_name, \
     NULL::text AS range_subtype_name \
     FROM (SELECT oid AS wanted_oid, 0 AS depth FROM pg_catalog.pg_type \
     WHERE array_has(CAST($1 AS INT UNSIGNED[]), oid) \
     UNION SELECT typelem, 1 FROM pg_catalog.pg_type \
     WHERE array_has(CAST($1 AS INT UNSIGNED[]), oid) AND typelem <> 0) AS wanted \
     JOIN pg_catalog.pg_type t ON t.oid = wanted.wanted_oid \
     JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
     LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem \
     ORDER BY depth DESC",
)];

/// The statement that is executed instead of `sql`.
pub(crate) fn stand_in(sql: &str) -> &str {
    let begin = sql.trim_start();
    let found = KNOWN.iter().find(|(known, _)| {
        let head = begin.get(..known.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(known))
    });
    found.map_or(sql, |(_, own)| own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_statements_stand_for_themselves() {
        for sql in [
            "SELECT 1",
            "WITH RECURSIVE typeinfo_tre",
            "wíth recursive typeinfo_tree(",
        ] {
            assert_eq!(stand_in(sql), sql);
        }
        let asked = "WITH RECURSIVE typeinfo_tree(\n    oid, ns, name) AS (SELECT 1)";
        assert!(stand_in(asked).starts_with("SELECT t.oid"));
    }
}
