//! INSERT.

use crate::define::database_for;
use crate::series::{FoundSeries, find_series_in};
use crate::statement::{TreeRun, done, fault, semantic};
use crate::trees::{TreeDatabase, measurement_fields, plain_type};
use marigram_access::DatabasePrivileges;
use marigram_engine::WriteOptions;
use marigram_iotdb::{
    DEVICE_TAG, DEVICES_TABLE, IotDbFault, IotDbType, PathPattern, StatusCode, TreeInsert,
    TreeLiteral, TreeSqlContext, day_of_text, field_name, java_double, ms_to_day, ms_to_ns,
    parse_time,
};
use marigram_model::{BatchBuilder, FieldValueRef, TagValueRef};
use marigram_service::{WriteStep, write_blocking};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;

/// A value in the type of its timeseries.
#[derive(Clone, Debug, PartialEq)]
enum InsertedValue {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// ns
    Time(i64),
}

impl InsertedValue {
    fn as_field(&self) -> FieldValueRef<'_> {
        match self {
            Self::Boolean(value) => FieldValueRef::Bool(*value),
            Self::Int32(value) => FieldValueRef::I32(*value),
            Self::Int64(value) => FieldValueRef::I64(*value),
            Self::Float(value) => FieldValueRef::F32(*value),
            Self::Double(value) => FieldValueRef::F64(*value),
            Self::Text(value) => FieldValueRef::String(value),
            Self::Bytes(value) => FieldValueRef::Bytes(value),
            Self::Time(value) => FieldValueRef::Timestamp(*value),
        }
    }
}

/// The type of a timeseries whose first value is this one; `None` for null.
fn inferred_type(value: &TreeLiteral) -> Option<IotDbType> {
    Some(match value {
        TreeLiteral::Null => return None,
        TreeLiteral::Boolean(_) => IotDbType::Boolean,
        TreeLiteral::Integer(_) | TreeLiteral::Float(_) => IotDbType::Double,
        TreeLiteral::Text(_) => IotDbType::Text,
        TreeLiteral::Bytes(_) => IotDbType::Blob,
        TreeLiteral::Time(_) => IotDbType::Timestamp,
    })
}

/// A value in a type; `None` if it does not fit.
fn converted(
    value: &TreeLiteral,
    kind: IotDbType,
    context: &TreeSqlContext,
) -> Option<InsertedValue> {
    let number = || match value {
        TreeLiteral::Integer(number) => Some(*number as f64),
        TreeLiteral::Float(number) => Some(*number),
        _ => None,
    };
    Some(match (kind, value) {
        (IotDbType::Boolean, TreeLiteral::Boolean(value)) => InsertedValue::Boolean(*value),
        (IotDbType::Boolean, TreeLiteral::Integer(0 | 1)) => {
            InsertedValue::Boolean(*value == TreeLiteral::Integer(1))
        }
        (IotDbType::Int32, TreeLiteral::Integer(value)) => {
            InsertedValue::Int32(i32::try_from(*value).ok()?)
        }
        (IotDbType::Int64, TreeLiteral::Integer(value) | TreeLiteral::Time(value)) => {
            InsertedValue::Int64(*value)
        }
        (IotDbType::Float, _) => InsertedValue::Float(number()? as f32),
        (IotDbType::Double, _) => InsertedValue::Double(number()?),
        (IotDbType::Timestamp, TreeLiteral::Integer(value) | TreeLiteral::Time(value)) => {
            InsertedValue::Time(ms_to_ns(*value)?)
        }
        (IotDbType::Timestamp, TreeLiteral::Text(text)) => {
            InsertedValue::Time(ms_to_ns(parse_time(text, context)?)?)
        }
        (IotDbType::Date, TreeLiteral::Text(text)) => InsertedValue::Int32(day_of_text(text)?),
        (IotDbType::Date, TreeLiteral::Time(time)) => {
            InsertedValue::Int32(ms_to_day(*time, &context.zone)?)
        }
        (IotDbType::Blob, TreeLiteral::Bytes(bytes)) => InsertedValue::Bytes(bytes.clone()),
        (IotDbType::Blob, TreeLiteral::Text(text)) => InsertedValue::Bytes(text.clone().into()),
        (IotDbType::Text | IotDbType::String, value) => InsertedValue::Text(match value {
            TreeLiteral::Text(text) => text.clone(),
            TreeLiteral::Boolean(value) => value.to_string(),
            TreeLiteral::Integer(value) | TreeLiteral::Time(value) => value.to_string(),
            TreeLiteral::Float(value) => java_double(*value),
            TreeLiteral::Bytes(_) | TreeLiteral::Null => return None,
        }),
        _ => return None,
    })
}

/// `INSERT`
///
/// # Errors
/// If a value has not the type of its timeseries (the others are stored), or nothing can be stored.
pub(crate) async fn insert(run: &TreeRun<'_>, insert: &TreeInsert) -> SqlResult<StatementRows> {
    if insert.device.nodes().len() < 2 {
        let device = &insert.device;
        return Err(fault(IotDbFault::path(format!(
            "{device} is not a legal path"
        ))));
    }
    let database = database_for(run, &insert.device).await?;
    run.check(&database.name, DatabasePrivileges::WRITE)?;
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = insert.measurements.iter().find(|name| !seen.insert(*name)) {
        return Err(semantic(format!(
            "Insertion contains duplicated measurement: {twice}"
        )));
    }
    let types = MeasurementTypes::find(run, &database, insert).await?;
    let mut failures: Vec<(&str, String)> = Vec::new();
    let mut columns = Vec::new();
    for (place, measurement) in insert.measurements.iter().enumerate() {
        let Some(kind) = types.kind(place, measurement, insert) else {
            continue;
        };
        let values = insert.rows.iter().map(|row| match row.values.get(place) {
            None | Some(TreeLiteral::Null) => Ok(None),
            Some(value) => match converted(value, kind, &run.times) {
                Some(value) => Ok(Some(value)),
                None => Err(refusal(insert, measurement, kind, (row.time_ms, value))),
            },
        });
        match values.collect::<Result<Vec<_>, String>>() {
            Ok(values) => columns.push((types.field(measurement, kind), values)),
            Err(reason) => failures.push((measurement, reason)),
        }
    }
    let stored = store(run, &database, insert, &columns).await?;
    if failures.is_empty() {
        return Ok(done("INSERT", stored));
    }
    let names: Vec<&str> = failures.iter().map(|(name, _)| *name).collect();
    let reasons: Vec<&str> = failures.iter().map(|(_, reason)| reason.as_str()).collect();
    let message = format!(
        "Fail to insert measurements [{}] caused by [{}]",
        names.join(", "),
        reasons.join(", ")
    );
    Err(fault(IotDbFault::new(StatusCode::METADATA, message)))
}

/// Why a value is not stored.
fn refusal(
    insert: &TreeInsert,
    measurement: &str,
    kind: IotDbType,
    (time_ms, value): (i64, &TreeLiteral),
) -> String {
    let path = insert.device.child(measurement);
    let inserted = inferred_type(value).unwrap_or(kind);
    format!(
        "data type of {path} is not consistent, registered type {kind}, inserting type {inserted}, \
         timestamp {time_ms}, value {value}"
    )
}

/// Writes columns of values.
async fn store(
    run: &TreeRun<'_>,
    database: &TreeDatabase,
    insert: &TreeInsert,
    columns: &[(String, Vec<Option<InsertedValue>>)],
) -> SqlResult<u64> {
    let device = insert.device.to_string();
    let mut rows = BatchBuilder::new(DEVICES_TABLE);
    let slot = rows.slot([(DEVICE_TAG, TagValueRef::String(&device))]);
    for (place, row) in insert.rows.iter().enumerate() {
        let mut has_value = false;
        for (field, values) in columns {
            let Some(Some(value)) = values.get(place) else {
                continue;
            };
            if !has_value {
                let time = ms_to_ns(row.time_ms).ok_or_else(|| {
                    semantic(format!(
                        "Current system timestamp precision is ms, please check whether the timestamp \
                         {} is correct.",
                        row.time_ms
                    ))
                })?;
                rows.row(slot, time);
                has_value = true;
            }
            rows.field(field, value.as_field());
        }
    }
    if rows.is_empty() {
        return Ok(0);
    }
    let batch = rows.finish();
    let (engine, name) = (run.engine().clone(), database.name.clone());
    let write = move |step: &mut WriteStep| {
        let report = engine.write(&name, &batch, WriteOptions { grow: true })?;
        step.stored(report.stored as u64);
        Ok::<_, marigram_sql::SqlError>(report)
    };
    let report = write_blocking(true, write).await?;
    match report.rejected.first() {
        None => Ok(report.stored as u64),
        Some(rejected) => {
            let reason = &rejected.reason;
            let message = format!("{reason} ({} rows were not stored)", report.rejected.len());
            Err(fault(IotDbFault::new(StatusCode::WRITE_PROCESS, message)))
        }
    }
}

/// The types that the measurements of a device have.
struct MeasurementTypes<'a> {
    database: &'a TreeDatabase,
    known: FoundSeries,
}

impl<'a> MeasurementTypes<'a> {
    /// Looks up what the inserted measurements are; those whose type is clear without that are left out.
    async fn find(
        run: &TreeRun<'_>,
        database: &'a TreeDatabase,
        insert: &TreeInsert,
    ) -> SqlResult<MeasurementTypes<'a>> {
        let fields = database.devices.as_deref().map(measurement_fields);
        let fields = fields.unwrap_or_default();
        let mut patterns = Vec::new();
        for (place, measurement) in insert.measurements.iter().enumerate() {
            let mut of_name = fields
                .iter()
                .filter(|field| *field.measurement == **measurement);
            // If the only field has the type that the value suggests, no device can have another one.
            let is_clear = match (of_name.next(), of_name.next()) {
                (None, _) => true,
                (Some(only), None) => first_type(place, insert) == Some(only.kind),
                (Some(_), Some(_)) => false,
            };
            if !is_clear || database.declared.is_some() {
                let path = insert.device.child(measurement);
                patterns.push(PathPattern::for_path(&path));
            }
        }
        let known = if patterns.is_empty() {
            FoundSeries::default()
        } else {
            find_series_in(run, vec![database.clone()], &patterns).await?
        };
        Ok(Self { database, known })
    }

    /// The type of a measurement; `None` if it is new, and all values are null.
    fn kind(&self, place: usize, measurement: &str, insert: &TreeInsert) -> Option<IotDbType> {
        let mut series = self.known.series.iter();
        match series.find(|series| *series.measurement == *measurement) {
            Some(series) => Some(series.kind),
            None => first_type(place, insert),
        }
    }

    /// The field for values of a measurement.
    fn field(&self, measurement: &str, kind: IotDbType) -> String {
        let table = self.database.devices.as_deref();
        let plain = table.and_then(|table| plain_type(table, measurement));
        field_name(measurement, kind, plain)
    }
}

/// The type that the first value of a measurement suggests.
fn first_type(place: usize, insert: &TreeInsert) -> Option<IotDbType> {
    let mut rows = insert.rows.iter();
    rows.find_map(|row| inferred_type(row.values.get(place)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_type_of_their_timeseries() {
        let context = TreeSqlContext::for_utc(0);
        let fits = |value: TreeLiteral, kind| converted(&value, kind, &context);
        let text = |text: &str| TreeLiteral::Text(text.to_owned());
        assert_eq!(
            fits(TreeLiteral::Integer(3), IotDbType::Float),
            Some(InsertedValue::Float(3.0))
        );
        assert_eq!(fits(TreeLiteral::Float(3.5), IotDbType::Int32), None);
        assert_eq!(fits(TreeLiteral::Integer(1 << 40), IotDbType::Int32), None);
        assert_eq!(
            fits(TreeLiteral::Integer(1), IotDbType::Boolean),
            Some(InsertedValue::Boolean(true))
        );
        assert_eq!(fits(TreeLiteral::Integer(2), IotDbType::Boolean), None);
        assert_eq!(
            fits(text("2024-02-29"), IotDbType::Date),
            Some(InsertedValue::Int32(20_240_229))
        );
        assert_eq!(fits(text("2023-02-29"), IotDbType::Date), None);
        assert_eq!(
            fits(text("1970-01-01T00:00:01Z"), IotDbType::Timestamp),
            Some(InsertedValue::Time(1_000_000_000))
        );
        assert_eq!(
            fits(TreeLiteral::Float(1.5), IotDbType::Text),
            Some(InsertedValue::Text("1.5".to_owned()))
        );
        assert_eq!(fits(text("x"), IotDbType::Double), None);
    }
}
