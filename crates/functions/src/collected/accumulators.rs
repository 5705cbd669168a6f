//! The accumulators: they add rows, and make lists or texts of them.

use super::rows::{CollectedOrder, EmittedRows, GroupedRows};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder, LargeStringBuilder,
    ListArray, StructArray, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use std::sync::Arc;

/// What is made of the rows of a group.
#[derive(Debug, Clone)]
pub(super) enum Collection {
    /// A list of the values.
    List,
    /// The values, which are texts, with this one between them.
    Text(String),
    /// The value, a float, at this fraction of the way through the sorted values.
    Percentile {
        /// From 0 to 1.
        fraction: f64,
        /// Whether the greatest value is the first one.
        is_descending: bool,
    },
}

/// Collects the values of groups.
#[derive(Debug)]
pub(super) struct GroupedValues {
    rows: GroupedRows,
    collection: Collection,
    /// The type of the values.
    value_type: DataType,
    /// The columns of ORDER BY in a partial result.
    order_fields: Fields,
    /// The number of arguments, which precede the columns of ORDER BY.
    arguments: usize,
}

impl GroupedValues {
    /// Values of a type, in an order; `arguments` counts those of the call.
    pub(super) fn new(
        collection: Collection,
        order: CollectedOrder,
        value_type: DataType,
        order_fields: Fields,
        arguments: usize,
    ) -> Self {
        Self {
            rows: GroupedRows::new(order),
            collection,
            value_type,
            order_fields,
            arguments,
        }
    }

    /// The value, and the columns of ORDER BY, among the columns of a batch.
    fn columns(&self, batch: &[ArrayRef]) -> Vec<ArrayRef> {
        let order = batch.iter().skip(self.arguments);
        batch.iter().take(1).chain(order).cloned().collect()
    }

    fn list(&self, emitted: &EmittedRows) -> Result<ArrayRef> {
        let values = match emitted.columns.first() {
            Some(values) => Arc::clone(values),
            None => new_empty_array(&self.value_type),
        };
        let has_rows = emitted.offsets.windows(2).map(|ends| ends[0] < ends[1]);
        let nulls: NullBuffer = has_rows.collect();
        let item = Arc::new(Field::new_list_field(self.value_type.clone(), true));
        let offsets = OffsetBuffer::new(emitted.offsets.clone().into());
        Ok(Arc::new(ListArray::try_new(
            item,
            offsets,
            values,
            Some(nulls),
        )?))
    }

    fn answer(&self, emitted: &EmittedRows) -> Result<ArrayRef> {
        match &self.collection {
            Collection::List => self.list(emitted),
            Collection::Text(delimiter) => joined(emitted, delimiter),
            Collection::Percentile {
                fraction,
                is_descending,
            } => percentiles(emitted, *fraction, *is_descending),
        }
    }

    fn partial(&self, emitted: &EmittedRows) -> Result<Vec<ArrayRef>> {
        let mut state = vec![self.list(emitted)?];
        if self.has_orderings() {
            let columns = if emitted.columns.is_empty() {
                empty_columns(&self.order_fields)
            } else {
                emitted.columns[1..].to_vec()
            };
            let rows = StructArray::try_new(self.order_fields.clone(), columns, None)?;
            let item = DataType::Struct(self.order_fields.clone());
            let item = Arc::new(Field::new_list_field(item, true));
            let offsets = OffsetBuffer::new(emitted.offsets.clone().into());
            let orderings = ListArray::try_new(item, offsets, Arc::new(rows), None)?;
            state.push(Arc::new(orderings));
        }
        Ok(state)
    }

    /// Whether an answer needs sorted values: percentiles select single ones.
    fn is_sorted(&self) -> bool {
        !matches!(self.collection, Collection::Percentile { .. })
    }

    fn has_orderings(&self) -> bool {
        !self.rows.order().distinct && !self.order_fields.is_empty()
    }
}

fn empty_columns(fields: &Fields) -> Vec<ArrayRef> {
    let columns = fields.iter();
    columns
        .map(|field| new_empty_array(field.data_type()))
        .collect()
}

/// The texts of each group, joined; NULL for a group without texts.
fn joined<'a>(emitted: &'a EmittedRows, delimiter: &str) -> Result<ArrayRef> {
    let groups = emitted.offsets.len() - 1;
    let Some(values) = emitted.columns.first() else {
        let nulls = std::iter::repeat_n(None::<&str>, groups);
        let mut texts = LargeStringBuilder::new();
        texts.extend(nulls);
        return Ok(Arc::new(texts.finish()));
    };
    let text: Box<dyn Fn(usize) -> &'a str + 'a> = match values.data_type() {
        DataType::Utf8 => {
            let texts = values.as_string::<i32>();
            Box::new(|row| texts.value(row))
        }
        DataType::LargeUtf8 => {
            let texts = values.as_string::<i64>();
            Box::new(|row| texts.value(row))
        }
        DataType::Utf8View => {
            let texts = values.as_string_view();
            Box::new(|row| texts.value(row))
        }
        other => return internal_err!("string_agg got {other}"),
    };
    let bytes: usize = (0..values.len())
        .map(|row| text(row).len() + delimiter.len())
        .sum();
    let mut texts = LargeStringBuilder::with_capacity(groups, bytes);
    for ends in emitted.offsets.windows(2) {
        let rows = usize::try_from(ends[0]).unwrap_or(0)..usize::try_from(ends[1]).unwrap_or(0);
        if rows.is_empty() {
            texts.append_null();
            continue;
        }
        let first = rows.start;
        for row in rows {
            if row > first {
                texts.append_text(delimiter);
            }
            texts.append_text(text(row));
        }
        texts.append_value("");
    }
    Ok(Arc::new(texts.finish()))
}

/// A percentile of each group, as PostgreSQL interpolates it; NULL for a group without values.
fn percentiles(emitted: &EmittedRows, fraction: f64, is_descending: bool) -> Result<ArrayRef> {
    let groups = emitted.offsets.len() - 1;
    let Some(values) = emitted.columns.first() else {
        return Ok(Arc::new(Float64Array::new_null(groups)));
    };
    let Some(values) = values.as_primitive_opt::<Float64Type>() else {
        return internal_err!("percentile_cont got {}", values.data_type());
    };
    let mut answers = Float64Builder::with_capacity(groups);
    for ends in emitted.offsets.windows(2) {
        let rows = usize::try_from(ends[0]).unwrap_or(0)..usize::try_from(ends[1]).unwrap_or(0);
        let mut values = values.values()[rows].to_vec();
        answers.append_option(percentile(&mut values, fraction, is_descending));
    }
    Ok(Arc::new(answers.finish()))
}

fn percentile(values: &mut [f64], fraction: f64, is_descending: bool) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    // NaN is greater than all numbers, and zeros are equal.
    let order = |a: &f64, b: &f64| {
        let order = a.partial_cmp(b);
        order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    };
    let place = fraction * last as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let mut at = |place: usize| {
        let place = place.min(last);
        let place = if is_descending { last - place } else { place };
        *values.select_nth_unstable_by(place, order).1
    };
    let (low, high) = (at(below), at(above));
    Some(if below == above {
        low
    } else {
        low + (place - below as f64) * (high - low)
    })
}

/// Appends to the value that a builder is at.
trait AppendText {
    fn append_text(&mut self, text: &str);
}

impl AppendText for LargeStringBuilder {
    fn append_text(&mut self, text: &str) {
        // The builder of texts cannot fail.
        let _ = std::fmt::Write::write_str(self, text);
    }
}

impl GroupsAccumulator for GroupedValues {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.rows.have_groups(total_num_groups);
        let counts =
            |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let groups = group_indices.iter().enumerate();
        let groups = groups.map(|(row, group)| counts(row).then_some(*group));
        let columns = self.columns(values);
        self.rows.append(&columns, groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let emitted = self.rows.emit(emit_to, self.is_sorted())?;
        self.answer(&emitted)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let emitted = self.rows.emit(emit_to, false)?;
        self.partial(&emitted)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.rows.have_groups(total_num_groups);
        let Some(lists) = states[0].as_list_opt::<i32>() else {
            return internal_err!("a partial result is a list");
        };
        let (offsets, values) = (lists.value_offsets(), lists.values());
        let from = usize::try_from(offsets[0]).unwrap_or(0);
        let mut columns = vec![values.slice(from, values_len(offsets))];
        if self.has_orderings() {
            let orderings = states.get(1).and_then(|state| state.as_list_opt::<i32>());
            let Some(orderings) = orderings else {
                return internal_err!("a partial result has the columns of ORDER BY");
            };
            let offsets = orderings.value_offsets();
            let from = usize::try_from(offsets[0]).unwrap_or(0);
            let rows = orderings.values().slice(from, values_len(offsets));
            columns.extend(rows.as_struct().columns().iter().cloned());
        }
        let lengths = offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let groups = group_indices
            .iter()
            .zip(lengths)
            .flat_map(|(group, length)| {
                std::iter::repeat_n(Some(*group), usize::try_from(length).unwrap_or(0))
            });
        self.rows.append(&columns, groups)
    }

    /// Each row is a group of its own.
    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut single = Self::new(
            self.collection.clone(),
            self.rows.order().clone(),
            self.value_type.clone(),
            self.order_fields.clone(),
            self.arguments,
        );
        let groups: Vec<usize> = (0..values[0].len()).collect();
        single.update_batch(values, &groups, filter, groups.len())?;
        single.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.size()
    }
}

/// The number of values of a list array with these offsets.
fn values_len(offsets: &[i32]) -> usize {
    let length = offsets[offsets.len() - 1] - offsets[0];
    usize::try_from(length).unwrap_or(0)
}

/// Collects the values of a single group.
#[derive(Debug)]
pub(super) struct SingleGroup(pub GroupedValues);

impl SingleGroup {
    fn emitted(&mut self, is_final: bool) -> Result<EmittedRows> {
        self.0.rows.have_groups(1);
        self.0.rows.sorted(EmitTo::All, is_final)
    }
}

impl Accumulator for SingleGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let groups = std::iter::repeat_n(Some(0), values[0].len());
        self.0.rows.have_groups(1);
        let columns = self.0.columns(values);
        self.0.rows.append(&columns, groups)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let emitted = self.emitted(self.0.is_sorted())?;
        ScalarValue::try_from_array(&self.0.answer(&emitted)?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let emitted = self.emitted(false)?;
        let state = self.0.partial(&emitted)?.into_iter();
        state
            .map(|column| ScalarValue::try_from_array(&column, 0))
            .collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let groups = vec![0; states[0].len()];
        GroupsAccumulator::merge_batch(&mut self.0, states, &groups, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_interpolated_as_in_postgresql() {
        for (values, fraction, is_descending, expected) in [
            (
                &[1.0, 2.0, 4.0][..],
                0.333_333_333_333_3,
                false,
                Some(1.666_666_666_666_6),
            ),
            (&[4.0, 1.0, 2.0], 0.3, true, Some(2.8)),
            (&[4.0, 1.0, 2.0], 0.0, true, Some(4.0)),
            (&[4.0, 1.0, 2.0], 1.0, false, Some(4.0)),
            (&[f64::NAN, 1.0, 2.0], 0.5, false, Some(2.0)),
            (&[7.5], 0.3, false, Some(7.5)),
            (&[], 0.3, false, None),
        ] {
            let found = percentile(&mut values.to_vec(), fraction, is_descending);
            assert_eq!(found, expected, "{fraction} of {values:?}");
        }
    }
}
