//! Questions in QuestDB's SQL.

use marigram_lab::data::{Field, FieldKind, SECOND_NS, Table};
use marigram_lab::question::{Aggregate, Devices, Select};
use marigram_lab_drivers::sql;

/// QuestDB's SQL.
const DIALECT: sql::Dialect = sql::Dialect {
    time: "ts",
    literal: |ns| ns.to_string(),
    bucket: |window_ns| format!("timestamp_floor('{}', ts)", window(window_ns)),
    last: sql::Last::LatestOn,
    integer_tags: true,
    aggregate,
};

/// `ns` nanoseconds in the largest unit that gives a whole number, because the number must fit 32 bits.
fn window(ns: i64) -> String {
    let units = [(SECOND_NS, "s"), (1_000_000, "T"), (1_000, "U"), (1, "n")];
    let whole = units.into_iter().find(|(unit_ns, _)| ns % unit_ns == 0);
    let (unit_ns, unit) = whole.unwrap_or((1, "n"));
    format!("{}{unit}", ns / unit_ns)
}

/// The statement for `select`.
pub(super) fn statement(table: &Table, select: &Select) -> String {
    let by_key = match &select.devices {
        Devices::All => false,
        Devices::In(tag, _) | Devices::Below(tag, _) => *tag == table.key,
    };
    // The key is a symbol even if it is a number.
    let dialect = sql::Dialect {
        integer_tags: !by_key,
        ..DIALECT
    };
    sql::statement(&dialect, table, select)
}

/// An aggregate in QuestDB's SQL.
fn aggregate(function: Aggregate, field: &Field) -> String {
    match (function, field.kind) {
        // The sum of FLOAT has single precision.
        (Aggregate::Sum, FieldKind::F32) => format!("sum({}::double)", field.name),
        // QuestDB does not count booleans, and its booleans are never null.
        (Aggregate::Count, FieldKind::Bool) => "count(*)".to_owned(),
        _ => sql::aggregate(function, field),
    }
}
