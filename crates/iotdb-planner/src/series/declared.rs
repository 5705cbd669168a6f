//! Timeseries that were created explicitly: the rows of their table.

use super::TimeseriesKey;
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use marigram_engine::{SeriesSelection, TableSnapshot};
use marigram_iotdb::{DEVICE_TAG, IotDbType, MEASUREMENT_TAG};
use marigram_model::SeriesId;
use marigram_sql::SqlResult;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of a timeseries that was created explicitly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredSeries {
    pub(crate) kind: Option<IotDbType>,
    pub(crate) encoding: Option<String>,
    pub(crate) compression: Option<String>,
    pub(crate) alias: Option<String>,
    pub(crate) tags: Option<String>,
    pub(crate) attributes: Option<String>,
    pub(crate) is_aligned: bool,
}

/// The names of the fields of the table of created timeseries, in the order of reading.
pub(crate) const DECLARED_FIELDS: [&str; 7] = [
    "datatype",
    "encoding",
    "compression",
    "alias",
    "tags",
    "attributes",
    "aligned",
];

/// The device and the measurement of a series.
type SeriesNames = (Option<Arc<str>>, Option<Arc<str>>);

/// The declarations of some series of that table.
///
/// # Errors
/// If storage cannot be read.
pub(super) fn declared_of(
    snapshot: &TableSnapshot,
    shard: usize,
    series: &[u32],
) -> SqlResult<Vec<(TimeseriesKey, DeclaredSeries)>> {
    let table = Arc::clone(snapshot.schema());
    let devices = tag_texts(snapshot, shard, series, DEVICE_TAG)?;
    let measurements = tag_texts(snapshot, shard, series, MEASUREMENT_TAG)?;
    let names = devices.into_iter().zip(measurements);
    let names: HashMap<u32, SeriesNames> = series.iter().copied().zip(names).collect();
    let fields: Vec<_> = DECLARED_FIELDS
        .iter()
        .filter_map(|name| Some((*name, table.field(name)?.id)))
        .collect();
    let ids: Vec<_> = fields.iter().map(|(_, id)| *id).collect();
    let mut selection = SeriesSelection::default();
    selection
        .shards
        .resize_with(snapshot.views().len().max(shard + 1), Default::default);
    selection.shards[shard].extend(series.iter().copied());
    let mut all = Vec::new();
    for (_, rows) in snapshot.last_rows(&selection, &ids)? {
        let mut columns = HashMap::new();
        for ((name, _), column) in fields.iter().zip(&rows.columns) {
            let texts = cast(column, &DataType::Utf8).map_err(DataFusionError::from)?;
            columns.insert(*name, texts);
        }
        let mut row = 0;
        for run in &rows.runs {
            row += run.rows as usize;
            let Some((Some(device), Some(measurement))) = names.get(&run.series.0) else {
                continue;
            };
            let text = |name: &str| {
                let texts = columns.get(name)?.as_string::<i32>();
                let at = row.checked_sub(1)?;
                (at < texts.len() && !texts.is_null(at)).then(|| texts.value(at).to_owned())
            };
            let declared = DeclaredSeries {
                kind: text("datatype").and_then(|kind| IotDbType::from_name(&kind)),
                encoding: text("encoding"),
                compression: text("compression"),
                alias: text("alias"),
                tags: text("tags"),
                attributes: text("attributes"),
                is_aligned: text("aligned").as_deref() == Some("true"),
            };
            all.push(((Arc::clone(device), Arc::clone(measurement)), declared));
        }
    }
    Ok(all)
}

/// The texts of a tag of some series.
///
/// # Errors
/// Arrow's errors.
pub(crate) fn tag_texts(
    snapshot: &TableSnapshot,
    shard: usize,
    series: &[u32],
    tag: &str,
) -> SqlResult<Vec<Option<Arc<str>>>> {
    let ordinal = snapshot.schema().tag(tag).map(|(ordinal, _)| ordinal);
    let ids: Vec<SeriesId> = series.iter().map(|id| SeriesId(*id)).collect();
    let values = snapshot.tag_values(shard, &ids, ordinal.unwrap_or(u16::MAX));
    let values = cast(&values, &DataType::Utf8).map_err(DataFusionError::from)?;
    let texts = values.as_string::<i32>();
    Ok((0..series.len())
        .map(|row| (row < texts.len() && !texts.is_null(row)).then(|| texts.value(row).into()))
        .collect())
}
