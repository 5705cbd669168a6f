//! What is taken out of INSERT, UPDATE and DELETE, and filled in.

use super::*;
use crate::dialect::parse::parse;
use crate::dialect::statement::Command;
use datafusion::sql::parser;

fn statement(sql: &str) -> Statement {
    let Ok(Command::Plan(statement, _)) = parse(sql) else {
        panic!("{sql}: {:?}", parse(sql));
    };
    match statement.into_inner() {
        parser::Statement::Statement(statement) => *statement,
        other => panic!("{sql}: {other:?}"),
    }
}

fn extras(sql: &str) -> (DmlExtras, String) {
    let mut statement = statement(sql);
    let extras = take_extras(&mut statement).unwrap();
    (extras, statement.to_string())
}

fn texts(assignments: &[(String, Expr)]) -> Vec<String> {
    let texts = assignments
        .iter()
        .map(|(name, value)| format!("{name} = {value}"));
    texts.collect()
}

#[test]
fn an_insert_loses_what_the_planner_refuses() {
    let (extras, left) = extras(
        "INSERT INTO t (id, n) OVERRIDING SYSTEM VALUE VALUES (1, 2) ON CONFLICT (ID, \"N\") DO \
         UPDATE SET N = excluded.n + t.n, (a, b) = (1, DEFAULT) WHERE t.n < 5 RETURNING id, n AS m",
    );
    assert_eq!(left, "INSERT INTO t (id, n) VALUES (1, 2)");
    assert_eq!(extras.overriding, Some(Overriding::System));
    assert_eq!(extras.returning.map(|items| items.len()), Some(2));
    let clause = extras.on_conflict.unwrap();
    let columns = vec!["id".to_owned(), "N".to_owned()];
    assert_eq!(clause.target, ConflictTarget::Columns(columns));
    let ConflictAction::Update {
        assignments,
        condition,
    } = clause.action
    else {
        panic!("an update");
    };
    assert_eq!(
        texts(&assignments),
        ["n = excluded.n + t.n", "a = 1", "b = DEFAULT"]
    );
    assert_eq!(condition.unwrap().to_string(), "t.n < 5");
}

#[test]
fn keys_of_conflicts_are_named_in_three_ways() {
    for (target, expected) in [
        ("", ConflictTarget::Any),
        (
            "ON CONSTRAINT public.T_pkey",
            ConflictTarget::Constraint("t_pkey".to_owned()),
        ),
        ("(a)", ConflictTarget::Columns(vec!["a".to_owned()])),
    ] {
        let sql = format!("INSERT INTO t SELECT 1 ON CONFLICT {target} DO NOTHING");
        let (extras, _) = extras(&sql);
        let clause = extras.on_conflict.unwrap();
        assert_eq!(clause.target, expected);
        assert_eq!(clause.action, ConflictAction::Nothing);
    }
    for sql in [
        "INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1",
        "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 1, A = 2",
        "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET (a, b) = (SELECT 1, 2)",
    ] {
        assert!(take_extras(&mut statement(sql)).is_err(), "{sql}");
    }
}

#[test]
fn changes_return_rows() {
    for sql in [
        "UPDATE t SET a = 1 WHERE b RETURNING *",
        "DELETE FROM t WHERE a = 1 RETURNING *",
        "INSERT INTO t OVERRIDING USER VALUE SELECT 1 RETURNING *",
    ] {
        let (extras, left) = extras(sql);
        assert!(extras.returning.is_some(), "{sql}");
        assert!(
            !left.contains("RETURNING") && !left.contains("marigram"),
            "{left}"
        );
        let error = refuse_extras(&statement(sql)).unwrap_err().to_string();
        let verb = sql.split(' ').next().unwrap();
        let words = format!("{verb} … RETURNING is not supported");
        assert!(error.contains(&words), "{error}");
    }
    let overriding = statement("INSERT INTO t OVERRIDING USER VALUE SELECT 1");
    let error = refuse_extras(&overriding).unwrap_err().to_string();
    assert!(
        error.contains("INSERT … OVERRIDING is not supported"),
        "{error}"
    );
    assert!(refuse_extras(&statement("INSERT INTO t SELECT 1")).is_ok());
}

#[test]
fn defaults_stand_for_their_word() {
    let columns = ["id", "a", "b"].map(ToOwned::to_owned);
    let defaults = HashMap::from([("a".to_owned(), Expr::value(Value::Boolean(true)))]);
    for (sql, expected) in [
        (
            "UPDATE t SET A = DEFAULT, b = DEFAULT, id = 1",
            "UPDATE t SET \"a\" = true, \"b\" = NULL, \"id\" = 1",
        ),
        (
            "INSERT INTO t VALUES (DEFAULT, default, DEFAULT), (1, 2, 3)",
            "INSERT INTO t VALUES (NULL, true, NULL), (1, 2, 3)",
        ),
        (
            "INSERT INTO t (b, \"a\") VALUES (DEFAULT, DEFAULT)",
            "INSERT INTO t (b, \"a\") VALUES (NULL, true)",
        ),
        (
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t (\"id\", \"a\", \"b\") VALUES (NULL, true, NULL)",
        ),
    ] {
        let mut statement = statement(sql);
        fill_defaults(&mut statement, &columns, &defaults).unwrap();
        assert_eq!(statement.to_string(), expected, "{sql}");
    }

    // A list with a subquery has become a query.
    let sql = "INSERT INTO t (a, b) VALUES (DEFAULT, (SELECT max(b) FROM t)), (1, DEFAULT)";
    let mut statement = statement(sql);
    fill_defaults(&mut statement, &columns, &defaults).unwrap();
    let filled = statement.to_string();
    assert!(filled.contains("SELECT true AS column1"), "{filled}");
    assert!(filled.contains("NULL AS column2"), "{filled}");
}
