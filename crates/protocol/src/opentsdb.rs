//! Points of OpenTSDB as batches: a metric is a table with one field, its tags are those of the table.
//! Annotations are rows of a table of their own.

use hashbrown::HashMap;
use marigram_model::{BatchBuilder, FieldType, FieldValueRef, TagValueRef, WriteBatch};
use marigram_opentsdb::{
    ANNOTATION_FIELDS, ANNOTATION_TABLE, ANNOTATION_TAG, Annotation, DataPoint, STORED_FIELD,
    annotation_tag,
};

/// The points of one metric.
#[derive(Clone, Debug)]
pub struct MetricBatch {
    /// The rows.
    pub batch: WriteBatch,
    /// The number of the point of each row, from 0.
    pub points: Vec<usize>,
}

/// One batch for each metric, in the order in which the metrics come first.
pub fn metric_batches(points: &[DataPoint]) -> Vec<MetricBatch> {
    let mut metrics: Vec<MetricInWork<'_>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (number, point) in points.iter().enumerate() {
        let place = *by_name.entry(&point.metric).or_insert_with(|| {
            metrics.push(MetricInWork::new(&point.metric));
            metrics.len() - 1
        });
        if let Some(metric) = metrics.get_mut(place) {
            metric.add(number, point);
        }
    }
    metrics.into_iter().map(MetricInWork::finish).collect()
}

struct MetricInWork<'a> {
    builder: BatchBuilder,
    value_place: usize,
    slots: HashMap<Vec<(&'a str, &'a str)>, u32>,
    points: Vec<usize>,
}

impl<'a> MetricInWork<'a> {
    fn new(metric: &str) -> Self {
        let mut builder = BatchBuilder::new(metric);
        let value_place = builder.field_place(STORED_FIELD, FieldType::F64);
        Self {
            builder,
            value_place,
            slots: HashMap::new(),
            points: Vec::new(),
        }
    }

    fn add(&mut self, number: usize, point: &'a DataPoint) {
        let tags = point.tags.iter();
        let tags: Vec<(&str, &str)> = tags
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let slot = match self.slots.get(&tags) {
            Some(slot) => *slot,
            None => {
                let values = tags.iter();
                let values = values.map(|(key, value)| (*key, TagValueRef::String(value)));
                let slot = self.builder.slot(values);
                self.slots.insert(tags, slot);
                slot
            }
        };
        // Times of points have 13 digits at most. The last of these years are beyond nanoseconds.
        self.builder
            .row(slot, point.time_ms.saturating_mul(1_000_000));
        let value = FieldValueRef::F64(point.value);
        self.builder.field_at(self.value_place, value);
        self.points.push(number);
    }

    fn finish(self) -> MetricBatch {
        MetricBatch {
            batch: self.builder.finish(),
            points: self.points,
        }
    }
}

/// Annotations as rows, in their order.
pub fn annotation_batch(annotations: &[Annotation]) -> WriteBatch {
    let mut builder = BatchBuilder::new(ANNOTATION_TABLE);
    let [start, end, description, notes, custom] = ANNOTATION_FIELDS;
    for annotation in annotations {
        let tag = TagValueRef::String(annotation_tag(&annotation.tsuid));
        let slot = builder.slot([(ANNOTATION_TAG, tag)]);
        builder.row(slot, annotation.start_ms().saturating_mul(1_000_000));
        builder.field(start, FieldValueRef::I64(annotation.start_time));
        builder.field(end, FieldValueRef::I64(annotation.end_time));
        builder.field(description, FieldValueRef::String(&annotation.description));
        builder.field(notes, FieldValueRef::String(&annotation.notes));
        builder.field(custom, FieldValueRef::String(&annotation.custom_text()));
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_a_table_and_a_tag_set_a_slot() {
        let point = |metric: &str, time_ms: i64, host: &str| DataPoint {
            metric: metric.to_owned(),
            time_ms,
            value: time_ms as f64,
            tags: vec![("host".to_owned(), host.to_owned())],
        };
        let points = [
            point("cpu", 1000, "a"),
            point("mem", 1000, "a"),
            point("cpu", 2000, "a"),
            point("cpu", 1000, "b"),
        ];
        let batches = metric_batches(&points);
        assert_eq!(batches.len(), 2);
        let cpu = &batches[0];
        assert_eq!(cpu.batch.check(), Ok(()));
        assert_eq!((cpu.batch.table.as_str(), cpu.batch.slot_count), ("cpu", 2));
        assert_eq!(cpu.batch.slots, [0, 0, 1]);
        assert_eq!(
            &cpu.batch.times[..],
            [1_000_000_000, 2_000_000_000, 1_000_000_000]
        );
        assert_eq!(cpu.points, [0, 2, 3]);
        assert_eq!(batches[1].points, [1]);
        assert!(metric_batches(&[]).is_empty());
    }
    #[test]
    fn annotations_are_rows_with_the_series_as_tag() {
        let annotation = |tsuid: &str, start_time: i64| Annotation {
            tsuid: tsuid.to_owned(),
            start_time,
            description: "d".to_owned(),
            ..Annotation::default()
        };
        let batch = annotation_batch(&[annotation("0A", 1_356_998_400), annotation("", 1000)]);
        assert_eq!(batch.check(), Ok(()));
        assert_eq!(batch.table, "opentsdb_annotations");
        assert_eq!(
            &batch.times[..],
            [1_356_998_400_000_000_000, 1_000_000_000_000]
        );
        assert_eq!(batch.tags[0].value(0), Some(TagValueRef::String("0A")));
        assert_eq!(batch.tags[0].value(1), Some(TagValueRef::String("global")));
        let names: Vec<&str> = batch.fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ANNOTATION_FIELDS);
    }
}
