//! Applies a stream without buckets to tables: what `aggregateWindow` does with each window.

use crate::fault::fault;
use crate::merge::merged;
use crate::value::{FluxCaller, FluxOperation, FluxStream, FluxTable, FluxValue};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The tables of a stream, with `tables` in its placeholder.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn applied(
    stream: &FluxStream,
    tables: &[FluxTable],
    caller: &mut dyn FluxCaller,
) -> SqlResult<Vec<FluxTable>> {
    let input = |caller: &mut dyn FluxCaller| match stream.inputs.first() {
        Some(input) => applied(input, tables, caller),
        None => Ok(Vec::new()),
    };
    Ok(match &stream.operation {
        FluxOperation::Placeholder => tables.to_vec(),
        FluxOperation::Constant(tables) => tables.clone(),
        FluxOperation::Yield => input(caller)?,
        FluxOperation::Filter {
            predicate,
            keeps_empty,
        } => {
            let mut made = Vec::new();
            for table in input(caller)? {
                made.extend(filtered(
                    stream.at,
                    table,
                    (predicate, *keeps_empty),
                    caller,
                )?);
            }
            made
        }
        FluxOperation::Each(function) => {
            let mut made = Vec::new();
            for table in input(caller)? {
                made.extend(function(table, caller)?);
            }
            made
        }
        FluxOperation::Regroup(function) => {
            let mut made = Vec::new();
            for table in input(caller)? {
                made.extend(function(table, caller)?);
            }
            merged(stream.at, made)?
        }
        FluxOperation::Gather(function) => {
            let mut inputs = Vec::with_capacity(stream.inputs.len());
            for input in &stream.inputs {
                inputs.push(applied(input, tables, caller)?);
            }
            function(inputs, caller)?
        }
        FluxOperation::Read(_) | FluxOperation::Listing(_) => {
            return Err(fault(stream.at, "a function of windows reads no buckets"));
        }
    })
}

/// The rows of a table that fulfil a function; nothing, where none does and empty tables go.
///
/// # Errors
/// What is wrong with the function, and where.
pub(crate) fn filtered(
    at: FluxPosition,
    table: FluxTable,
    (predicate, keeps_empty): (&FluxValue, bool),
    caller: &mut dyn FluxCaller,
) -> SqlResult<Option<FluxTable>> {
    let table = Arc::new(table);
    let mut rows = Vec::new();
    for row in 0..table.rows {
        caller.next_row();
        let given = vec![("r".to_owned(), FluxValue::Row(Arc::clone(&table), row))];
        match caller.call(at, predicate, given, None)? {
            FluxValue::Bool(true) => rows.push(row),
            FluxValue::Bool(false) | FluxValue::Null => {}
            other => {
                let kind = other.type_name();
                let message = format!("filter: fn returns {kind}, and not bool");
                return Err(fault(at, message));
            }
        }
    }
    if rows.is_empty() && !keeps_empty {
        return Ok(None);
    }
    if rows.len() == table.rows {
        return Ok(Some(Arc::unwrap_or_clone(table)));
    }
    Ok(Some(table.taken(&rows)))
}
