//! The checks that InfluxDB makes on statements before it runs them, besides those of a SELECT.

use crate::ast::{BinaryOp, Cardinality, Expr, Measurement, MeasurementName, Source, Statement};
use crate::select_error::SelectError;

/// Checks a statement as a whole: that it does not use what is internal to InfluxDB, and that WHERE
/// has no time if only names and tags are read. A SELECT needs [`super::analyze`] too.
///
/// # Errors
/// The refusals of InfluxDB, in its words.
pub fn check_statement(statement: &Statement) -> Result<(), SelectError> {
    let no_time = |condition: &Option<Expr>, statement: &'static str| {
        if condition.as_ref().is_some_and(has_time) {
            return Err(SelectError::TimeInWhere(statement));
        }
        Ok(())
    };
    match statement {
        Statement::Select(select) => select.sources.iter().try_for_each(check_source),
        Statement::ShowMeasurements(show) => no_time(&show.condition, "SHOW MEASUREMENTS"),
        Statement::DropSeries { condition, .. } => no_time(condition, "DROP SERIES"),
        Statement::ShowCardinality(show) => {
            let statement = match show.of {
                Cardinality::Series => "SHOW SERIES EXACT CARDINALITY",
                Cardinality::Measurement => "SHOW MEASUREMENT EXACT CARDINALITY",
                Cardinality::TagKey => "SHOW TAG KEY EXACT CARDINALITY",
                Cardinality::FieldKey => "SHOW FIELD KEY CARDINALITY",
                Cardinality::TagValues(_) => return Ok(()),
            };
            no_time(&show.condition, statement)
        }
        _ => Ok(()),
    }
}

/// Refuses the measurements from which InfluxDB answers SHOW statements.
fn check_source(source: &Source) -> Result<(), SelectError> {
    let Source::Measurement(Measurement {
        name: MeasurementName::Name(name),
        ..
    }) = source
    else {
        return Ok(());
    };
    let instead = match name.as_str() {
        "_fieldKeys" => "SHOW FIELD KEYS",
        "_measurements" => "SHOW MEASUREMENTS",
        "_series" => "SHOW SERIES",
        "_tagKeys" => "SHOW TAG KEYS",
        "_tags" => "SHOW TAG VALUES",
        "_name" | "_tagKey" => "the appropriate meta command",
        _ => return Ok(()),
    };
    let system = name.clone();
    Err(SelectError::SystemSource { system, instead })
}

/// Whether `time` is on the left side of a comparison.
fn has_time(condition: &Expr) -> bool {
    let joins = |op| matches!(op, BinaryOp::And | BinaryOp::Or);
    match condition {
        Expr::Binary(binary) if joins(binary.op) => {
            let (first, links) = binary.chain(joins);
            has_time(first) || links.iter().any(|(_, rhs)| has_time(rhs))
        }
        Expr::Binary(binary) => binary.lhs.is_time(),
        Expr::Paren(inner) => has_time(inner),
        _ => false,
    }
}
