//! The query of a materialized view, in SQL, that computes what a continuous query does. Each part
//! that has no equal there is an error that names it.

use crate::statement_run::StatementRun;
use jiff::Timestamp;
use marigram_influxql::ast::{
    Binary, BinaryOp, Call, Dimension, Expr, Field, Fill, Literal, Measurement, MeasurementName,
    Select, Source, VarRef,
};
use marigram_influxql::columns::field_name;
use marigram_model::{FieldType, TableSchema};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

/// Why there is no such query.
type Unfit<T> = Result<T, String>;

/// The query of a view in `database`.
pub(super) fn view_query(run: &StatementRun<'_>, database: &str, select: &Select) -> Unfit<String> {
    check_clauses(select)?;
    let table = source_table(run, database, &select.sources)?;
    let (bucket, tags) = groups(&table, &select.dimensions)?;
    let mut query = format!("SELECT {bucket} AS \"time\"");
    let mut names: HashSet<String> = HashSet::from(["time".to_owned()]);
    for tag in &tags {
        names.insert((*tag).to_owned());
        let _ = write!(query, ", {}", name(tag));
    }
    for field in &expanded(&table, &select.fields) {
        let alias = field_name(field);
        let column = aggregate(&table, field)?;
        let _ = write!(query, ", {column} AS {}", name(&alias));
        if !names.insert(alias.clone()) {
            return Err(format!("two columns are called {alias}"));
        }
    }
    let (database, source) = (name(&table.database), name(&table.name));
    let _ = write!(query, " FROM {database}.{source}");
    if let Some(condition) = &select.condition {
        let _ = write!(query, " WHERE {}", comparison(&table, condition)?);
    }
    query.push_str(" GROUP BY 1");
    for tag in &tags {
        let _ = write!(query, ", {}", name(tag));
    }
    Ok(query)
}

/// Refuses clauses that a view has not.
fn check_clauses(select: &Select) -> Unfit<()> {
    let limits = [select.limit, select.offset, select.slimit, select.soffset];
    let unfit = [
        (limits != [0; 4], "it has LIMIT or OFFSET"),
        (select.order_by.is_some(), "it has ORDER BY"),
        (select.time_zone.is_some(), "it has tz()"),
        (
            !matches!(select.fill, Fill::Null | Fill::None),
            "it fills groups without rows",
        ),
    ];
    match unfit.iter().find(|(is_there, _)| *is_there) {
        Some((_, reason)) => Err((*reason).to_owned()),
        None => Ok(()),
    }
}

fn source_table(
    run: &StatementRun<'_>,
    database: &str,
    sources: &[Source],
) -> Unfit<Arc<TableSchema>> {
    let [source] = sources else {
        return Err("it reads more than one measurement".to_owned());
    };
    let Source::Measurement(Measurement {
        database: of,
        retention_policy: policy,
        name: measurement,
    }) = source
    else {
        return Err("it reads a subquery".to_owned());
    };
    let MeasurementName::Name(measurement) = measurement else {
        return Err("it reads measurements by a regular expression".to_owned());
    };
    if of != database {
        return Err("it reads another database".to_owned());
    }
    let engine = run.context.engine();
    let table = run.policies.table_name(engine, of, policy, measurement);
    let table = table.and_then(|table| engine.table(of, &table).ok());
    let table = table.ok_or_else(|| format!("the measurement {measurement} has no rows yet"))?;
    if table.rollup.is_some() || table.view.is_some() {
        return Err(format!("{measurement} is a view itself"));
    }
    Ok(table)
}

/// The bucket of GROUP BY, and the tags.
fn groups<'a>(
    table: &'a TableSchema,
    dimensions: &'a [Dimension],
) -> Unfit<(String, Vec<&'a str>)> {
    let mut bucket = None;
    let mut tags: Vec<&str> = Vec::new();
    for Dimension(dimension) in dimensions {
        match dimension {
            Expr::Call(call) if call.name == "time" => {
                let (every_ns, offset_ns) = match call.args.as_slice() {
                    [Expr::Literal(Literal::Duration(every_ns))] => (*every_ns, 0),
                    [
                        Expr::Literal(Literal::Duration(every_ns)),
                        Expr::Literal(Literal::Duration(offset_ns)),
                    ] => (*every_ns, *offset_ns),
                    _ => return Err("time() has other arguments than two durations".to_owned()),
                };
                bucket = Some(bucket_of(table, every_ns, offset_ns));
            }
            Expr::VarRef(var) => match table.tag(&var.name) {
                Some((_, tag)) if !tags.contains(&&*tag.name) => tags.push(&tag.name),
                Some(_) => {}
                None => return Err(format!("{} in GROUP BY is no tag", var.name)),
            },
            // The tags of today: who creates it is told.
            Expr::Wildcard(_) => {
                let all = table.tags.iter().map(|tag| &*tag.name);
                let new: Vec<&str> = all.filter(|tag| !tags.contains(tag)).collect();
                tags.extend(new);
            }
            _ => return Err("GROUP BY has tags of a regular expression".to_owned()),
        }
    }
    match bucket {
        Some(bucket) => Ok((bucket, tags)),
        None => Err("there is no GROUP BY time()".to_owned()),
    }
}

/// Buckets that begin where InfluxDB's do: counted from 1970-01-01.
fn bucket_of(table: &TableSchema, every_ns: i64, offset_ns: i64) -> String {
    let time = name(&table.time_name);
    let origin = offset_ns.rem_euclid(every_ns.max(1));
    let origin = Timestamp::from_nanosecond(i128::from(origin)).unwrap_or(Timestamp::UNIX_EPOCH);
    let origin = origin.strftime("%Y-%m-%d %H:%M:%S%.9f");
    format!("date_bin(INTERVAL '{every_ns} nanoseconds', {time}, TIMESTAMP '{origin}')")
}

/// Whether a query takes all tags or fields that its measurement has when it is created.
pub(super) fn has_wildcard(select: &Select) -> bool {
    let of_fields = select
        .fields
        .iter()
        .any(|field| wildcard_call(field).is_some());
    let is_of_all = |Dimension(of): &Dimension| matches!(of, Expr::Wildcard(_));
    of_fields || select.dimensions.iter().any(is_of_all)
}

/// A function over `*`.
fn wildcard_call(field: &Field) -> Option<&Call> {
    match &field.expr {
        Expr::Call(call) if matches!(call.args.as_slice(), [Expr::Wildcard(_)]) => Some(call),
        _ => None,
    }
}

/// The columns, where a function over `*` is one over each field that it can compute.
fn expanded(table: &TableSchema, fields: &[Field]) -> Vec<Field> {
    let mut all = Vec::new();
    for field in fields {
        let Some(call) = wildcard_call(field) else {
            all.push(field.clone());
            continue;
        };
        let is_of_any = matches!(call.name.as_str(), "count" | "first" | "last");
        let stored = table.fields.iter();
        let mut stored: Vec<_> = stored
            .filter(|column| is_of_any || is_number(column.kind))
            .collect();
        stored.sort_by(|a, b| a.name.cmp(&b.name));
        let prefix = match field.alias.as_str() {
            "" => &call.name,
            alias => alias,
        };
        all.extend(stored.into_iter().map(|column| Field {
            expr: Expr::Call(Call {
                name: call.name.clone(),
                args: vec![Expr::VarRef(VarRef {
                    name: column.name.clone(),
                    cast: None,
                })],
            }),
            alias: format!("{prefix}_{}", column.name),
            span: field.span,
        }));
    }
    all
}

const fn is_number(kind: FieldType) -> bool {
    !matches!(
        kind,
        FieldType::Bool | FieldType::String | FieldType::Bytes | FieldType::Timestamp
    )
}

/// A function over a field, with the type that InfluxQL gives it.
fn aggregate(table: &TableSchema, field: &Field) -> Unfit<String> {
    let (function, argument) = match &field.expr {
        Expr::Call(call) => match call.args.as_slice() {
            [Expr::VarRef(argument)] => (call.name.as_str(), argument),
            _ => return Err(format!("{}() does not name one field", call.name)),
        },
        other => return Err(format!("{other} is no function over a field")),
    };
    let (column, kind) = column_of(table, argument)?;
    let time = name(&table.time_name);
    let whole = match kind {
        FieldType::I32 | FieldType::I64 => Some("BIGINT"),
        FieldType::U64 => Some("BIGINT UNSIGNED"),
        FieldType::F32 | FieldType::F64 => None,
        _ if matches!(function, "count" | "first" | "last") => None,
        _ => {
            return Err(format!(
                "{function}() of {} is none of numbers",
                argument.name
            ));
        }
    };
    let call = match function {
        "count" | "sum" | "min" | "max" | "spread" | "median" | "stddev" => {
            format!("{function}({column})")
        }
        "mean" => format!("avg({column})"),
        "first" | "last" => format!("{function}({column}, {time})"),
        other => return Err(format!("{other}() is none of its functions")),
    };
    Ok(match (function, whole) {
        ("sum" | "spread", Some(whole)) => format!("CAST({call} AS {whole})"),
        ("mean" | "median" | "stddev", _) => format!("CAST({call} AS DOUBLE)"),
        _ => call,
    })
}

/// A field's column, and its type.
fn column_of(table: &TableSchema, var: &VarRef) -> Unfit<(String, FieldType)> {
    let missing = || format!("{} is no field of {}", var.name, table.name);
    if var.cast.is_some() {
        return Err(format!("{} is cast", var.name));
    }
    let field = table.field(&var.name).ok_or_else(missing)?;
    Ok((name(&field.name), field.kind))
}

/// A condition of WHERE.
fn comparison(table: &TableSchema, condition: &Expr) -> Unfit<String> {
    let binary: &Binary = match condition {
        Expr::Paren(inner) => return Ok(format!("({})", comparison(table, inner)?)),
        Expr::Binary(binary) => binary,
        other => return Err(format!("{other} in WHERE is no comparison")),
    };
    if matches!(binary.op, BinaryOp::And | BinaryOp::Or) {
        let (left, right) = (
            comparison(table, &binary.lhs)?,
            comparison(table, &binary.rhs)?,
        );
        return Ok(format!("({left} {} {right})", binary.op.sign()));
    }
    let unfit = || format!("{condition} in WHERE is none of its comparisons");
    let (Expr::VarRef(var), Expr::Literal(constant)) = (&binary.lhs, &binary.rhs) else {
        return Err(unfit());
    };
    let sign = match binary.op {
        BinaryOp::Eq => "=",
        BinaryOp::Neq => "<>",
        BinaryOp::Lt | BinaryOp::Lte | BinaryOp::Gt | BinaryOp::Gte => binary.op.sign(),
        _ => return Err(unfit()),
    };
    if let Some((_, tag)) = table.tag(&var.name) {
        // A tag that is missing is empty.
        let Literal::String(value) = constant else {
            return Err(unfit());
        };
        let holds_missing = match binary.op {
            BinaryOp::Eq => value.is_empty(),
            BinaryOp::Neq => !value.is_empty(),
            _ => return Err(unfit()),
        };
        let (column, value) = (name(&tag.name), text(value));
        let compared = format!("CAST({column} AS VARCHAR) {sign} {value}");
        return Ok(if holds_missing {
            format!("({column} IS NULL OR {compared})")
        } else {
            compared
        });
    }
    let (column, kind) = column_of(table, var)?;
    let is_number = is_number(kind);
    let value = match constant {
        Literal::Integer(value) if is_number => value.to_string(),
        Literal::Number(value) if is_number => format!("{value:?}"),
        Literal::String(value) if kind == FieldType::String => text(value),
        Literal::Boolean(value) if kind == FieldType::Bool => value.to_string(),
        _ => return Err(unfit()),
    };
    Ok(format!("{column} {sign} {value}"))
}

/// A name in SQL.
fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
