//! The value at the first or last time of a group.

use super::{FoldOutput, FoldRows, SeriesFold, SlotStatistics, same};
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use marigram_functions::TimeEdge;
use marigram_model::FieldValue;
use std::any::Any;

/// Whether a value at `time` replaces one at `held`.
fn replaces(side: TimeEdge, time: i64, held: i64) -> bool {
    match side {
        TimeEdge::First => time < held,
        TimeEdge::Last => time >= held,
    }
}

/// Values with their times.
#[derive(Debug)]
pub(crate) struct FirstLastFold {
    side: TimeEdge,
    /// Whether a null is a value.
    nulls: bool,
    kind: DataType,
    found: Vec<Option<(i64, ScalarValue)>>,
    /// The bytes of the values beyond their fixed size.
    beyond: usize,
}

impl FirstLastFold {
    /// Creates a fold for values of type `kind`; `nulls` says whether a null counts as a value.
    pub(crate) fn new(side: TimeEdge, nulls: bool, kind: DataType) -> Self {
        Self {
            side,
            nulls,
            kind,
            found: Vec::new(),
            beyond: 0,
        }
    }

    fn wants(&self, slot: usize, time: i64) -> bool {
        self.found[slot]
            .as_ref()
            .is_none_or(|(held, _)| replaces(self.side, time, *held))
    }

    fn put(&mut self, slot: usize, time: i64, value: ScalarValue) {
        let beyond = |value: &ScalarValue| value.size() - size_of::<ScalarValue>();
        self.beyond += beyond(&value);
        if let Some((_, old)) = self.found[slot].replace((time, value)) {
            self.beyond = self.beyond.saturating_sub(beyond(&old));
        }
    }
}

/// A statistic as a scalar.
fn scalar(value: &FieldValue) -> ScalarValue {
    match value {
        FieldValue::Bool(value) => ScalarValue::Boolean(Some(*value)),
        FieldValue::I32(value) => ScalarValue::Int32(Some(*value)),
        FieldValue::I64(value) => ScalarValue::Int64(Some(*value)),
        FieldValue::U64(value) => ScalarValue::UInt64(Some(*value)),
        FieldValue::F32(value) => ScalarValue::Float32(Some(*value)),
        FieldValue::F64(value) => ScalarValue::Float64(Some(*value)),
        FieldValue::Timestamp(value) => ScalarValue::TimestampNanosecond(Some(*value), None),
        FieldValue::String(value) => ScalarValue::Utf8(Some(value.clone())),
        FieldValue::Bytes(value) => ScalarValue::Binary(Some(value.clone())),
    }
}

impl FirstLastFold {
    /// The statistic of a page that this fold uses.
    fn edge<'a>(&self, facts: &SlotStatistics<'a>) -> Option<&'a (i64, FieldValue)> {
        let stats = facts.stats?;
        match self.side {
            TimeEdge::First => stats.first.as_ref(),
            TimeEdge::Last => stats.last.as_ref(),
        }
    }
}

impl SeriesFold for FirstLastFold {
    fn resize(&mut self, slots: usize) {
        self.found.resize_with(slots, || None);
    }

    fn can_take_page(&self, facts: &SlotStatistics<'_>) -> bool {
        let Some(stats) = facts.stats else {
            return !self.nulls;
        };
        if self.nulls && stats.nulls > 0 {
            return false;
        }
        let empty = u64::from(stats.nulls) == facts.rows;
        facts.whole && (empty || self.edge(facts).is_some())
    }

    fn take_page(&mut self, slot: usize, facts: &SlotStatistics<'_>) {
        if let Some((time, value)) = self.edge(facts)
            && self.wants(slot, *time)
        {
            self.put(slot, *time, scalar(value));
        }
    }

    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()> {
        let values = rows.args.first().and_then(Option::as_ref);
        if values.is_none() && !self.nulls {
            return Ok(());
        }
        let nulls = values
            .and_then(|values| values.nulls())
            .filter(|_| !self.nulls);
        let valid = |row: &u32| nulls.is_none_or(|nulls| nulls.is_valid(*row as usize));
        for stretch in rows.stretches {
            let mut all = stretch.start..stretch.end;
            let row = match self.side {
                TimeEdge::First => all.find(valid),
                TimeEdge::Last => all.rfind(valid),
            };
            let Some(row) = row.map(|row| row as usize) else {
                continue;
            };
            let slot = stretch.slot as usize;
            if self.wants(slot, rows.times[row]) {
                let value = match values {
                    Some(values) => ScalarValue::try_from_array(values, row)?.compacted(),
                    None => ScalarValue::try_from(&self.kind)?,
                };
                self.put(slot, rows.times[row], value);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()> {
        let mut other: Self = same(other)?;
        for (from, to) in from.iter().zip(to) {
            if let Some((time, value)) = other.found[*from as usize].take()
                && self.wants(*to as usize, time)
            {
                self.put(*to as usize, time, value);
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: FoldOutput, slots: &[u32]) -> Result<ArrayRef> {
        let null = ScalarValue::try_from(&self.kind)?;
        let values = slots.iter().map(|slot| match &self.found[*slot as usize] {
            Some((_, value)) => value.clone(),
            None => null.clone(),
        });
        if slots.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.kind));
        }
        ScalarValue::iter_to_array(values)
    }

    fn size(&self) -> usize {
        self.found.capacity() * size_of::<Option<(i64, ScalarValue)>>() + self.beyond
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
