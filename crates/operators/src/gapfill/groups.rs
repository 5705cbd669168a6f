//! Collects rows that arrive in the order of keys until a group is complete.

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// The rows of complete groups.
pub(super) struct WholeGroups {
    /// The rows.
    pub rows: RecordBatch,
    /// The end of each group.
    pub ends: Vec<usize>,
}

/// Collects rows.
pub(super) struct GroupGatherer {
    schema: SchemaRef,
    keys: Vec<usize>,
    /// `None` without keys: then there is one group.
    converter: Option<RowConverter>,
    /// The rows of the group that is not complete yet.
    open: Vec<RecordBatch>,
    /// The key of these rows.
    key: Option<OwnedRow>,
    /// Bytes of `open`.
    open_bytes: usize,
    /// The memory of `open`, and of the groups that were returned last.
    reservation: MemoryReservation,
}

impl GroupGatherer {
    /// Collects rows of `schema` whose keys are in the columns `keys`.
    ///
    /// # Errors
    /// If a key has a type that cannot be compared.
    pub(super) fn new(
        schema: SchemaRef,
        keys: Vec<usize>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let fields = keys.iter().map(|key| {
            let field = schema.field(*key);
            SortField::new(field.data_type().clone())
        });
        let converter = match keys.as_slice() {
            [] => None,
            _ => Some(RowConverter::new(fields.collect())?),
        };
        Ok(Self {
            schema,
            keys,
            converter,
            open: Vec::new(),
            key: None,
            open_bytes: 0,
            reservation,
        })
    }

    /// Adds rows and returns those of groups that are now complete. Groups that it returned before
    /// are released.
    ///
    /// # Errors
    /// If there is not enough memory for a group.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<Option<WholeGroups>> {
        self.reservation.resize(self.open_bytes);
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        let Some(converter) = &self.converter else {
            self.hold(batch)?;
            return Ok(None);
        };
        let keys: Vec<_> = self
            .keys
            .iter()
            .map(|key| batch.column(*key).clone())
            .collect();
        let keys = converter.convert_columns(&keys)?;
        let before: usize = self.open.iter().map(RecordBatch::num_rows).sum();
        let mut ends = Vec::new();
        if self
            .key
            .as_ref()
            .is_some_and(|key| key.row() != keys.row(0))
        {
            ends.push(before);
        }
        let changes = (1..batch.num_rows()).filter(|row| keys.row(*row) != keys.row(row - 1));
        ends.extend(changes.map(|row| before + row));
        let last = batch.num_rows() - 1;
        self.key = Some(keys.row(last).owned());
        let Some(end) = ends.last() else {
            self.hold(batch)?;
            return Ok(None);
        };
        let whole = end - before;
        self.hold(batch.slice(0, whole))?;
        let rows = self.whole()?;
        self.hold(batch.slice(whole, batch.num_rows() - whole))?;
        Ok(Some(WholeGroups { rows, ends }))
    }

    /// The last group. Without keys there is one, even if it has no rows.
    ///
    /// # Errors
    /// If its rows cannot be concatenated.
    pub(super) fn finish(&mut self) -> Result<Option<WholeGroups>> {
        if self.open.is_empty() && self.converter.is_some() {
            return Ok(None);
        }
        let rows = self.whole()?;
        let ends = vec![rows.num_rows()];
        Ok(Some(WholeGroups { rows, ends }))
    }

    /// The rows of the open group as one batch.
    fn whole(&mut self) -> Result<RecordBatch> {
        // During concatenation, there are two copies of each row.
        self.reservation.try_grow(self.open_bytes)?;
        let rows = concat_batches(&self.schema, &self.open)?;
        self.open.clear();
        self.open_bytes = 0;
        self.reservation.resize(bytes(&rows));
        Ok(rows)
    }

    fn hold(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = bytes(&batch);
        self.reservation.try_grow(bytes)?;
        self.open_bytes += bytes;
        self.open.push(batch);
        Ok(())
    }
}

/// The bytes of a batch's rows, without the rest of the buffers that they share.
fn bytes(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size()
            .unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of).sum()
}
