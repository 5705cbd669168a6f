//! Finds the timeseries of one database.

use super::declared::declared_of;
use super::{
    DeclaredSeries, SERIES_BYTES, TimeseriesKey, TreeDevice, TreeSeries, device_filter, tag_texts,
};
use crate::statement::{TreeRun, internal};
use crate::trees::{MeasurementField, TreeDatabase, measurement_fields};
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Column, DataFusionError};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, in_list, lit};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_engine::{SeriesSelection, TableSnapshot};
use marigram_influx::scan_of;
use marigram_iotdb::{DEVICE_TAG, IotDbType, PathNode, PathPattern, TreePath};
use marigram_model::{SortedRows, TableSchema};
use marigram_sql::SqlResult;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Series that are looked at together.
const SERIES_AT_ONCE: usize = 4096;

/// The most devices that a plan names one by one.
const NAMED_DEVICES_MAX: usize = 1000;

/// A device whose fields are looked for.
struct DeviceInWork {
    device: Arc<TreeDevice>,
    /// For each field of the table, whether the device has values of it; `None` if that is not known.
    has_values: Vec<Option<bool>>,
}

/// Finds the timeseries of a database.
pub(super) struct SeriesFinder<'a> {
    pub(super) run: &'a TreeRun<'a>,
    pub(super) database: &'a TreeDatabase,
    /// The place of the database.
    pub(super) place: usize,
    pub(super) patterns: &'a [PathPattern],
    /// The patterns of the devices.
    pub(super) devices: Vec<PathPattern>,
}

impl SeriesFinder<'_> {
    /// Adds the timeseries.
    ///
    /// # Errors
    /// If there is no memory for them, or storage cannot be read.
    pub(super) async fn find(&self, found: &mut Vec<TreeSeries>) -> SqlResult<()> {
        let mut declared = self.declared()?;
        if let Some(table) = &self.database.devices {
            let fields = self.possible_fields(table, &declared);
            let snapshot = self.run.engine().snapshot(&table.database, &table.name)?;
            let filter = device_filter(table, &self.devices)?;
            let selection = snapshot.list(&filter);
            for (shard, series) in selection.shards.iter().enumerate() {
                let all: Vec<u32> = series.iter().collect();
                for some in all.chunks(SERIES_AT_ONCE) {
                    self.run.budget.check_interrupt()?;
                    let devices = self.devices_of(&snapshot, shard, some, &fields).await?;
                    for device in devices {
                        self.add_stored(&device, &fields, &mut declared, found)?;
                    }
                }
            }
        }
        for ((device, measurement), series) in declared {
            let Ok(path) = TreePath::parse(&device) else {
                continue;
            };
            let device = Arc::new(TreeDevice {
                database: self.place,
                path,
                text: device,
            });
            self.push(
                TreeSeries {
                    device,
                    measurement,
                    kind: series.kind.unwrap_or(IotDbType::Text),
                    field: None,
                    declared: Some(series),
                },
                found,
            )?;
        }
        Ok(())
    }

    /// The fields that some pattern may match, judged by their measurement or its alias.
    fn possible_fields(
        &self,
        table: &TableSchema,
        declared: &BTreeMap<TimeseriesKey, Arc<DeclaredSeries>>,
    ) -> Vec<MeasurementField> {
        let mut fields = measurement_fields(table);
        let mut aliased = HashSet::new();
        for ((_, measurement), series) in declared {
            if series.alias.is_some() {
                aliased.insert(Arc::clone(measurement));
            }
        }
        fields.retain(|field| {
            let may_match = |pattern: &PathPattern| match pattern.nodes().last() {
                Some(last @ PathNode::Glob(_)) => {
                    let one = PathPattern::from_nodes(vec![last.clone()]);
                    one.is_ok_and(|one| one.matches(&[&*field.measurement]))
                }
                Some(PathNode::Name(name)) => **name == *field.measurement,
                Some(PathNode::AnyDepth) => true,
                None => false,
            };
            aliased.contains(&field.measurement) || self.patterns.iter().any(may_match)
        });
        fields
    }

    fn add_stored(
        &self,
        device: &DeviceInWork,
        fields: &[MeasurementField],
        declared: &mut BTreeMap<TimeseriesKey, Arc<DeclaredSeries>>,
        found: &mut Vec<TreeSeries>,
    ) -> SqlResult<()> {
        let mut taken: Option<&Arc<str>> = None;
        for (field, has_values) in fields.iter().zip(&device.has_values) {
            // A measurement has one type in a device: that of the first field with values.
            if *has_values != Some(true) || taken == Some(&field.measurement) {
                continue;
            }
            let key = (
                Arc::clone(&device.device.text),
                Arc::clone(&field.measurement),
            );
            let known = declared.get(&key).cloned();
            let kind = match known.as_ref().and_then(|it| it.kind) {
                Some(kind) if kind.stored() == field.kind => kind,
                // There may be another field with the declared type.
                Some(_) if has_declared_field(fields, device, field, known.as_deref()) => continue,
                _ => field.kind,
            };
            declared.remove(&key);
            taken = Some(&field.measurement);
            self.push(
                TreeSeries {
                    device: Arc::clone(&device.device),
                    measurement: Arc::clone(&field.measurement),
                    kind,
                    field: Some(Arc::clone(&field.field)),
                    declared: known,
                },
                found,
            )?;
        }
        Ok(())
    }

    fn push(&self, series: TreeSeries, found: &mut Vec<TreeSeries>) -> SqlResult<()> {
        let is_matched = |pattern: &PathPattern| series.is_matched(pattern);
        if self.patterns.iter().any(is_matched) {
            let texts = series.device.text.len() + series.measurement.len();
            self.run.budget.keep(SERIES_BYTES + 2 * texts)?;
            found.push(series);
        }
        Ok(())
    }

    /// The devices of some series, with what is known about their fields.
    async fn devices_of(
        &self,
        snapshot: &TableSnapshot,
        shard: usize,
        series: &[u32],
        fields: &[MeasurementField],
    ) -> SqlResult<Vec<DeviceInWork>> {
        let table = Arc::clone(snapshot.schema());
        let texts = tag_texts(snapshot, shard, series, DEVICE_TAG)?;
        let mut devices: Vec<(u32, DeviceInWork)> = Vec::new();
        for (series, text) in series.iter().zip(texts) {
            let Some(text) = text else { continue };
            let Ok(path) = TreePath::parse(&text) else {
                continue;
            };
            let is_matched = |pattern: &PathPattern| pattern.matches(path.nodes());
            if !self.devices.iter().any(is_matched) {
                continue;
            }
            let device = Arc::new(TreeDevice {
                database: self.place,
                path,
                text,
            });
            let has_values = vec![None; fields.len()];
            devices.push((*series, DeviceInWork { device, has_values }));
        }
        if fields.is_empty() || devices.is_empty() {
            return Ok(devices.into_iter().map(|(_, device)| device).collect());
        }
        let mut selection = SeriesSelection::default();
        selection
            .shards
            .resize_with(snapshot.views().len().max(shard + 1), Default::default);
        for (series, _) in &devices {
            selection.shards[shard].insert(*series);
        }
        let ids: Vec<_> = fields.iter().map(|field| field.id).collect();
        let places: HashMap<u32, usize> = devices
            .iter()
            .enumerate()
            .map(|(place, (series, _))| (*series, place))
            .collect();
        for (_, rows) in snapshot.last_rows(&selection, &ids)? {
            note_newest(&rows, |series, field| {
                if let Some(place) = places.get(&series)
                    && let Some((_, device)) = devices.get_mut(*place)
                {
                    device.has_values[field] = Some(true);
                }
            });
        }
        let mut devices: Vec<DeviceInWork> = devices.into_iter().map(|it| it.1).collect();
        self.count_unknown(&table, fields, &mut devices).await?;
        Ok(devices)
    }

    /// Counts the values of fields that the newest row of a device does not have.
    async fn count_unknown(
        &self,
        table: &TableSchema,
        fields: &[MeasurementField],
        devices: &mut [DeviceInWork],
    ) -> SqlResult<()> {
        let unknown: Vec<usize> = (0..fields.len())
            .filter(|field| devices.iter().any(|it| it.has_values[*field].is_none()))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let state = self.run.context.state(&self.database.name)?;
        let column = |name: &str| Expr::Column(Column::from_name(name));
        let mut rows = scan_of(&state, table).await?;
        let lacking: Vec<&str> = devices
            .iter()
            .filter(|it| it.has_values.contains(&None))
            .map(|it| &*it.device.text)
            .collect();
        if lacking.len() <= NAMED_DEVICES_MAX {
            let names = lacking.into_iter().map(lit).collect();
            rows = rows.filter(in_list(column(DEVICE_TAG), names, false))?;
        }
        let mut shown = vec![column(DEVICE_TAG).alias("d")];
        let mut counts = Vec::new();
        for place in &unknown {
            let name = format!("f{place}");
            shown.push(column(&fields[*place].field).alias(&name));
            counts.push(count(column(&name)).alias(format!("n{place}")));
        }
        let plan = rows.project(shown)?.aggregate(vec![column("d")], counts)?;
        let plan = state.create_physical_plan(&plan.build()?).await?;
        let mut batches = execute_stream(plan, state.task_ctx())?;
        let places: HashMap<Arc<str>, usize> = devices
            .iter()
            .enumerate()
            .map(|(place, it)| (Arc::clone(&it.device.text), place))
            .collect();
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            self.run.budget.check_interrupt()?;
            let names = cast(batch.column(0), &DataType::Utf8).map_err(DataFusionError::from)?;
            let names = names.as_string::<i32>();
            for (counted, place) in unknown.iter().enumerate() {
                let counts = batch.column(counted + 1).as_primitive_opt::<Int64Type>();
                let counts = counts.ok_or_else(|| internal("a count is no integer"))?;
                for (row, name) in names.iter().enumerate() {
                    if let Some(device) = name.and_then(|name| places.get(name))
                        && counts.value(row) > 0
                    {
                        devices[*device].has_values[*place] = Some(true);
                    }
                }
            }
        }
        Ok(())
    }

    /// The timeseries of the database that were created explicitly.
    fn declared(&self) -> SqlResult<BTreeMap<TimeseriesKey, Arc<DeclaredSeries>>> {
        let Some(table) = &self.database.declared else {
            return Ok(BTreeMap::new());
        };
        let snapshot = self.run.engine().snapshot(&table.database, &table.name)?;
        let filter = device_filter(table, &self.devices)?;
        let selection = snapshot.list(&filter);
        let mut all = BTreeMap::new();
        for (shard, series) in selection.shards.iter().enumerate() {
            let ids: Vec<u32> = series.iter().collect();
            for some in ids.chunks(SERIES_AT_ONCE) {
                self.run.budget.check_interrupt()?;
                for (key, series) in declared_of(&snapshot, shard, some)? {
                    self.run
                        .budget
                        .keep(SERIES_BYTES + key.0.len() + key.1.len())?;
                    all.insert(key, Arc::new(series));
                }
            }
        }
        Ok(all)
    }
}

/// Whether a device has values in the field of a measurement that has the declared type.
fn has_declared_field(
    fields: &[MeasurementField],
    device: &DeviceInWork,
    than: &MeasurementField,
    declared: Option<&DeclaredSeries>,
) -> bool {
    let kind = declared.and_then(|it| it.kind);
    let mut all = fields.iter().zip(&device.has_values);
    all.any(|(field, has_values)| {
        field.measurement == than.measurement
            && *has_values == Some(true)
            && kind.is_some_and(|kind| kind.stored() == field.kind)
    })
}

/// Calls `note` with each series and each column of which its newest row has a value.
fn note_newest(rows: &SortedRows, mut note: impl FnMut(u32, usize)) {
    let mut row = 0;
    for run in &rows.runs {
        let last = row + run.rows as usize;
        for (place, column) in rows.columns.iter().enumerate() {
            if (row..last).any(|row| row < column.len() && !column.is_null(row)) {
                note(run.series.0, place);
            }
        }
        row = last;
    }
}
