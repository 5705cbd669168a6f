//! Rows that come in the order of keys, gathered until a group of them is whole.

use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// Rows of whole groups.
pub struct Whole {
    /// The rows.
    pub rows: RecordBatch,
    /// Where each group ends.
    pub ends: Vec<usize>,
}

/// Gathers rows.
pub struct Gather {
    schema: SchemaRef,
    keys: Vec<usize>,
    /// None without keys: then there is one group.
    converter: Option<RowConverter>,
    /// Rows of the group that is not whole yet.
    open: Vec<RecordBatch>,
    /// Their key.
    key: Option<OwnedRow>,
    /// What `open` holds.
    reservation: MemoryReservation,
}

impl Gather {
    /// Rows of `schema` with keys in the columns `keys`.
    ///
    /// # Errors
    /// If a key has a type that cannot be compared.
    pub fn new(
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
            reservation,
        })
    }

    /// Takes rows; gives those of groups that are whole now.
    ///
    /// # Errors
    /// If there is not enough memory for a group.
    pub fn push(&mut self, batch: RecordBatch) -> Result<Option<Whole>> {
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
        let mut parts = std::mem::take(&mut self.open);
        parts.push(batch.slice(0, whole));
        let rows = concat_batches(&self.schema, &parts)?;
        self.reservation.free();
        self.hold(batch.slice(whole, batch.num_rows() - whole))?;
        Ok(Some(Whole { rows, ends }))
    }

    /// The last group. Without keys there is one, also of no rows.
    ///
    /// # Errors
    /// If its rows cannot be put together.
    pub fn finish(&mut self) -> Result<Option<Whole>> {
        let parts = std::mem::take(&mut self.open);
        if parts.is_empty() && self.converter.is_some() {
            return Ok(None);
        }
        let rows = concat_batches(&self.schema, &parts)?;
        let ends = vec![rows.num_rows()];
        Ok(Some(Whole { rows, ends }))
    }

    fn hold(&mut self, batch: RecordBatch) -> Result<()> {
        self.reservation.try_grow(batch.get_array_memory_size())?;
        self.open.push(batch);
        Ok(())
    }
}
