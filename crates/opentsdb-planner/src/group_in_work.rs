//! A group of series while its rows are read.

use crate::annotations::ShownAnnotations;
use crate::metric::{MetricColumns, PlanNames};
use marigram_influx::Budget;
use marigram_model::TableSchema;
use marigram_opentsdb::{
    Aggregator, Annotation, CheckedQuery, GroupTags, SeriesHead, SeriesPoint, SeriesReducer,
    series_uid,
};
use marigram_sql::SqlResult;
use serde_json::Value;
use std::sync::Arc;

/// Bytes that a series of a group holds beside its points.
const SERIES_BYTES: usize = 128;

/// The tags of a table in the order in which its rows are read.
pub(crate) struct OrderedKeys {
    pub(crate) names: Vec<String>,
    pub(crate) columns: PlanNames,
    /// How many of them tell one group from another.
    grouping: usize,
}

/// The order for a query.
pub(crate) fn ordered_keys(table: &TableSchema, query: &CheckedQuery) -> OrderedKeys {
    let mut names = query.group_keys();
    names.retain(|key| table.tag(key).is_some());
    let mut others: Vec<&str> = table.tags.iter().map(|tag| tag.name.as_str()).collect();
    others.retain(|key| !names.contains(key));
    others.sort_unstable();
    let grouping = match query.aggregator {
        Aggregator::None => names.len() + others.len(),
        _ => names.len(),
    };
    names.extend(others);
    OrderedKeys {
        names: names.into_iter().map(str::to_owned).collect(),
        columns: PlanNames::new(table),
        grouping,
    }
}

/// A batch of rows, and how far it was read.
pub(crate) struct BatchInWork {
    pub(crate) columns: MetricColumns,
    pub(crate) row: usize,
    pub(crate) rows: usize,
}

/// What the groups of a query are read for.
#[derive(Clone)]
pub(crate) struct GroupSource {
    pub(crate) query: Arc<CheckedQuery>,
    pub(crate) keys: Arc<OrderedKeys>,
    pub(crate) description: Option<Value>,
    pub(crate) shows_tsuids: bool,
    pub(crate) annotations: ShownAnnotations,
}

/// A group whose rows are being read.
pub(crate) struct GroupInWork<'a> {
    source: &'a GroupSource,
    reducer: SeriesReducer<'a>,
    /// The tags of the series that is being read; none before the first one.
    tags: Option<Vec<Option<String>>>,
    points: Vec<SeriesPoint>,
    series: Vec<Vec<SeriesPoint>>,
    shared: GroupTags,
    tsuids: Option<Vec<String>>,
    annotations: Vec<Annotation>,
    /// Bytes of the series that are complete.
    series_bytes: usize,
    /// Bytes that are reserved.
    held_bytes: usize,
}

/// A group that was read.
pub(crate) struct ReadGroup {
    /// What the answer says of it; its number is that of the first group.
    pub(crate) head: SeriesHead,
    pub(crate) series: Vec<Vec<SeriesPoint>>,
    pub(crate) held_bytes: usize,
}

/// How the next row belongs to what is being read.
#[derive(PartialEq, Eq)]
enum RowStep {
    SameSeries,
    NextSeries,
    NextGroup,
}

impl<'a> GroupInWork<'a> {
    /// A group without rows.
    pub(crate) fn new(source: &'a GroupSource) -> Self {
        Self {
            source,
            reducer: SeriesReducer::new(&source.query),
            tags: None,
            points: Vec::new(),
            series: Vec::new(),
            shared: GroupTags::default(),
            tsuids: source.shows_tsuids.then(Vec::new),
            annotations: Vec::new(),
            series_bytes: 0,
            held_bytes: 0,
        }
    }

    /// Reads rows of a batch; returns whether the next one belongs to another group.
    ///
    /// # Errors
    /// If there is no memory for the group.
    pub(crate) fn read(&mut self, batch: &mut BatchInWork, budget: &Budget) -> SqlResult<bool> {
        let (columns, keys) = (&batch.columns, &self.source.keys);
        while batch.row < batch.rows {
            match self.step(columns, batch.row) {
                RowStep::SameSeries => {}
                RowStep::NextGroup => return Ok(true),
                RowStep::NextSeries => {
                    self.end_series();
                    // A fill policy may make many points of one row.
                    self.reserve(budget)?;
                    let tags = (0..keys.names.len()).map(|place| columns.tag(place, batch.row));
                    self.tags = Some(tags.map(|tag| tag.map(str::to_owned)).collect());
                }
            }
            let (time_ms, value) = (columns.time_ms(batch.row), columns.value(batch.row));
            self.reducer.push(time_ms, value, &mut self.points);
            batch.row += 1;
        }
        Ok(false)
    }

    fn step(&self, columns: &MetricColumns, row: usize) -> RowStep {
        let Some(tags) = &self.tags else {
            return RowStep::NextSeries;
        };
        let mut places = tags.iter().enumerate();
        match places.find(|(place, tag)| tag.as_deref() != columns.tag(*place, row)) {
            None => RowStep::SameSeries,
            Some((place, _)) if place < self.source.keys.grouping => RowStep::NextGroup,
            Some(_) => RowStep::NextSeries,
        }
    }

    /// Ends the series that is being read, if there is one.
    fn end_series(&mut self) {
        let Some(tags) = &self.tags else {
            return;
        };
        let source = self.source;
        self.reducer.finish(&mut self.points);
        let pairs = || {
            let pairs = source.keys.names.iter().zip(tags);
            pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?)))
        };
        self.shared.add(pairs());
        let annotated = &source.annotations.of_series;
        if self.tsuids.is_some() || !annotated.is_empty() {
            let tsuid = series_uid(&source.query.metric, pairs());
            let annotations = annotated.get(&tsuid).into_iter().flatten();
            self.annotations.extend(annotations.cloned());
            if let Some(tsuids) = &mut self.tsuids {
                self.series_bytes += tsuid.len();
                tsuids.push(tsuid);
            }
        }
        let mut points = std::mem::take(&mut self.points);
        points.shrink_to_fit();
        self.series_bytes += SERIES_BYTES + points.len() * size_of::<SeriesPoint>();
        self.series.push(points);
    }

    /// Reserves the memory that the group holds now.
    ///
    /// # Errors
    /// If it is not there.
    pub(crate) fn reserve(&mut self, budget: &Budget) -> SqlResult<()> {
        let current = self.points.capacity() * size_of::<SeriesPoint>();
        let bytes = self.series_bytes + current + self.reducer.held_bytes();
        if bytes > self.held_bytes {
            budget.take(bytes - self.held_bytes);
            self.held_bytes = bytes;
        }
        budget.check()
    }

    /// Ends the group; `None` if it has no rows.
    ///
    /// # Errors
    /// If there is no memory for its last series.
    pub(crate) fn finish(mut self, budget: &Budget) -> SqlResult<Option<ReadGroup>> {
        self.end_series();
        let of_all = &self.source.annotations.of_all;
        // In the head, and in its text.
        let shown = self.annotations.iter().chain(of_all.iter());
        self.series_bytes += 2 * shown.map(Annotation::held_bytes).sum::<usize>();
        self.reserve(budget)?;
        if self.tags.is_none() {
            return Ok(None);
        }
        let query = &self.source.query;
        let (tags, aggregate_tags) = self.shared.into_parts();
        self.annotations.sort_by_key(Annotation::start_ms);
        let head = SeriesHead {
            number: 0,
            metric: query.metric.clone(),
            tags,
            aggregate_tags,
            tsuids: self.tsuids.map(|mut tsuids| {
                tsuids.sort();
                tsuids
            }),
            query: self.source.description.clone(),
            annotations: self.annotations,
            global_annotations: of_all.to_vec(),
            has_floats: query.has_floats(),
            shows_null: query.shows_null(),
        };
        Ok(Some(ReadGroup {
            head,
            series: self.series,
            held_bytes: self.held_bytes,
        }))
    }
}
