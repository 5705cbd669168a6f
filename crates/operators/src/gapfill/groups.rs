//! Rows that come in the order of keys, gathered until a group of them is whole.

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// Rows of whole groups.
pub struct WholeGroups {
    /// The rows.
    pub rows: RecordBatch,
    /// Where each group ends.
    pub ends: Vec<usize>,
}

/// Gathers rows.
pub struct GroupGatherer {
    schema: SchemaRef,
    keys: Vec<usize>,
    /// None without keys: then there is one group.
    converter: Option<RowConverter>,
    /// Rows of the group that is not whole yet.
    open: Vec<RecordBatch>,
    /// Their key.
    key: Option<OwnedRow>,
    /// Bytes of `open`.
    open_bytes: usize,
    /// Those, and the bytes of the groups that were given last.
    reservation: MemoryReservation,
}

impl GroupGatherer {
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
            open_bytes: 0,
            reservation,
        })
    }

    /// Takes rows; gives those of groups that are whole now. Those given before are done with.
    ///
    /// # Errors
    /// If there is not enough memory for a group.
    pub fn push(&mut self, batch: RecordBatch) -> Result<Option<WholeGroups>> {
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

    /// The last group. Without keys there is one, also of no rows.
    ///
    /// # Errors
    /// If its rows cannot be put together.
    pub fn finish(&mut self) -> Result<Option<WholeGroups>> {
        if self.open.is_empty() && self.converter.is_some() {
            return Ok(None);
        }
        let rows = self.whole()?;
        let ends = vec![rows.num_rows()];
        Ok(Some(WholeGroups { rows, ends }))
    }

    /// The rows that are open as one batch.
    fn whole(&mut self) -> Result<RecordBatch> {
        // While they are put together there are two of each.
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

/// What the rows of a batch take, without what is in its buffers besides.
fn bytes(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size()
            .unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(of).sum()
}
