//! `ALTER TABLE` in both grammars.

use super::*;
use crate::dialect::parse::parse;
use marigram_reference::{ForeignKeyAction, IdentityKind, NewColumn, ReferenceType};

fn readings(sql: &str) -> (Result<Box<Command>, GrammarError>, Vec<ReferenceAlteration>) {
    match parse(sql) {
        Ok(Command::Reference(ReferenceStatement::Change {
            series,
            reference: Ok(ReferenceChange::Alter(changes)),
            ..
        })) => (series, changes),
        other => panic!("{sql}: {other:?}"),
    }
}

fn text(name: &str, is_nullable: bool) -> NewColumn {
    NewColumn {
        name: name.to_owned(),
        kind: ReferenceType::Text,
        is_nullable,
        default: None,
        identity: None,
    }
}

#[test]
fn columns_are_added_with_their_constraints() {
    let (series, changes) = readings(
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a TEXT UNIQUE REFERENCES p (x) ON DELETE CASCADE",
    );
    assert!(series.is_err());
    let key = NewConstraint::Key {
        name: None,
        columns: vec!["a".to_owned()],
        is_primary: false,
    };
    let foreign = NewConstraint::ForeignKey {
        name: None,
        columns: vec!["a".to_owned()],
        parent: "p".to_owned(),
        parent_columns: vec!["x".to_owned()],
        on_delete: ForeignKeyAction::Cascade,
        on_update: ForeignKeyAction::Refuse,
    };
    let expected = [
        ReferenceAlteration::AddColumn {
            column: text("a", true),
            if_not_exists: true,
        },
        ReferenceAlteration::AddConstraint(key),
        ReferenceAlteration::AddConstraint(foreign),
    ];
    assert_eq!(changes, expected);
    let (series, changes) = readings("alter table t add b text not null, add c bigserial");
    assert!(series.is_err());
    let identity = NewColumn {
        kind: ReferenceType::Int8,
        identity: Some(IdentityKind::ByDefault),
        ..text("c", false)
    };
    let added = |column| ReferenceAlteration::AddColumn {
        column,
        if_not_exists: false,
    };
    assert_eq!(changes, [added(text("b", false)), added(identity)]);
}

#[test]
fn both_grammars_read_what_both_have() {
    for (sql, expected) in [
        (
            "ALTER TABLE IF EXISTS t RENAME TO \"U\"",
            ReferenceAlteration::Rename("U".to_owned()),
        ),
        (
            "ALTER TABLE t RENAME COLUMN A TO b",
            ReferenceAlteration::RenameColumn("a".to_owned(), "b".to_owned()),
        ),
        (
            "ALTER TABLE t DROP COLUMN IF EXISTS a",
            ReferenceAlteration::DropColumn {
                name: "a".to_owned(),
                if_exists: true,
                cascades: false,
            },
        ),
        (
            "ALTER TABLE t ALTER COLUMN a TYPE VARCHAR(5) USING a::varchar(5)",
            ReferenceAlteration::Type {
                column: "a".to_owned(),
                kind: ReferenceType::Varchar(5),
            },
        ),
        (
            "ALTER TABLE ONLY public.t OWNER TO postgres;",
            ReferenceAlteration::Nothing,
        ),
    ] {
        let (series, changes) = readings(sql);
        assert!(
            matches!(series.as_deref(), Ok(Command::AlterTable { .. })),
            "{sql}: {series:?}"
        );
        assert_eq!(changes, [expected], "{sql}");
    }
}

#[test]
fn reference_tables_change_what_tables_of_series_do_not() {
    let nullable = |column: &str, is_nullable| ReferenceAlteration::Nullable {
        column: column.to_owned(),
        is_nullable,
    };
    let default = |default: Option<&str>| ReferenceAlteration::Default {
        column: "a".to_owned(),
        default: default.map(ToOwned::to_owned),
    };
    for (sql, expected) in [
        (
            "ALTER TABLE t DROP COLUMN a CASCADE, DROP CONSTRAINT IF EXISTS k CASCADE",
            vec![
                ReferenceAlteration::DropColumn {
                    name: "a".to_owned(),
                    if_exists: false,
                    cascades: true,
                },
                ReferenceAlteration::DropConstraint {
                    name: "k".to_owned(),
                    if_exists: true,
                    cascades: true,
                },
            ],
        ),
        (
            "ALTER TABLE t RENAME CONSTRAINT k TO l",
            vec![ReferenceAlteration::RenameConstraint(
                "k".to_owned(),
                "l".to_owned(),
            )],
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a, b)",
            vec![
                nullable("a", false),
                nullable("b", false),
                ReferenceAlteration::AddConstraint(NewConstraint::Key {
                    name: Some("k".to_owned()),
                    columns: vec!["a".to_owned(), "b".to_owned()],
                    is_primary: true,
                }),
            ],
        ),
        (
            "ALTER TABLE t ADD CHECK (a > 0) NOT VALID, VALIDATE CONSTRAINT x",
            vec![
                ReferenceAlteration::AddConstraint(NewConstraint::Check {
                    name: None,
                    condition: "a > 0".to_owned(),
                    column: Some("a".to_owned()),
                }),
                ReferenceAlteration::Nothing,
            ],
        ),
        (
            "ALTER TABLE t ALTER a SET DEFAULT now(), ALTER a DROP DEFAULT, ALTER a SET DEFAULT NULL",
            vec![default(Some("now()")), default(None), default(None)],
        ),
        (
            "ALTER TABLE t ALTER COLUMN a SET NOT NULL, ALTER COLUMN a DROP NOT NULL",
            vec![nullable("a", false), nullable("a", true)],
        ),
    ] {
        assert_eq!(readings(sql).1, expected, "{sql}");
    }
}

#[test]
fn each_grammar_says_what_it_refuses() {
    for (sql, of_series, of_reference) in [
        (
            "ALTER TABLE t ADD d TEXT TAG",
            None,
            Some("end of the statement"),
        ),
        ("ALTER TABLE t SET (ttl = '1d')", None, Some("no settings")),
        (
            "ALTER TABLE t ADD a INT[]",
            Some("there is no type"),
            Some("JSONB holds a list"),
        ),
        (
            "ALTER TABLE t ALTER a TYPE INT USING a + 1",
            Some("USING may only be"),
            Some("USING may only be"),
        ),
        (
            "ALTER TABLE t SET SCHEMA s",
            Some("SET SCHEMA is not supported"),
            Some("SET SCHEMA is not supported"),
        ),
        (
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p ON DELETE SET DEFAULT",
            Some("FOREIGN KEY is not supported"),
            Some("SET DEFAULT is not supported"),
        ),
        (
            "ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 1)",
            Some("ADD GENERATED is not supported"),
            Some("becomes no identity"),
        ),
    ] {
        let Ok(Command::Reference(ReferenceStatement::Change {
            series, reference, ..
        })) = parse(sql)
        else {
            panic!("{sql}: {:?}", parse(sql));
        };
        let words = |error: GrammarError| SqlError::from(error).to_string();
        let series = series.err().map(words);
        let reference = reference.err().map(words);
        for (found, expected) in [(&series, of_series), (&reference, of_reference)] {
            let agree = match (found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(agree, "{sql}: {found:?}, expected {expected:?}");
        }
    }
    for sql in ["alter table t drop", "alter table t", "alter table t add a"] {
        assert!(parse(sql).is_err(), "{sql}");
    }
}
