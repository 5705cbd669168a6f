//! The arena of keys: table and tag key of each series, by id.
//!
//! Keys lie in blocks of [`BLOCK_SERIES`] series; a block that is full is cut to its size. So the
//! cost beyond the key's bytes is eight bytes a series (its end, its table).

use marigram_model::{SeriesId, TableId};

/// Series in a block: so few that the keys of a block of the longest keys (256 tags of 16 KiB)
/// stay below 4 GiB.
const BLOCK_SERIES: usize = 512;

/// Stands in the place of the table of a series whose table was dropped.
pub(crate) const GONE: TableId = TableId(u32::MAX);

#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<u32>,
    tables: Vec<TableId>,
}

impl Block {
    fn key(&self, at: usize) -> &[u8] {
        let start = if at == 0 {
            0
        } else {
            self.ends[at - 1] as usize
        };
        &self.bytes[start..self.ends[at] as usize]
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * self.ends.capacity() + 4 * self.tables.capacity()
    }

    fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.tables.shrink_to_fit();
    }
}

/// Keys by series id.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    blocks: Vec<Block>,
    len: usize,
    /// Memory of all blocks but the last.
    full_bytes: usize,
}

impl Keys {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a key for the next id; `false` where its block has no room for it.
    pub(crate) fn push(&mut self, table: TableId, key: &[u8]) -> bool {
        if self.len.is_multiple_of(BLOCK_SERIES) {
            if let Some(full) = self.blocks.last_mut() {
                full.shrink();
                self.full_bytes += full.memory_bytes();
            }
            self.blocks.push(Block::default());
        }
        let block = self
            .blocks
            .last_mut()
            .expect("a block was pushed with the first series");
        let Ok(end) = u32::try_from(block.bytes.len() + key.len()) else {
            return false;
        };
        block.bytes.extend_from_slice(key);
        block.ends.push(end);
        block.tables.push(table);
        self.len += 1;
        true
    }

    /// Table ([`GONE`] where it was dropped) and key of a series.
    pub(crate) fn get(&self, id: SeriesId) -> Option<(TableId, &[u8])> {
        let (block, at) = (id.0 as usize / BLOCK_SERIES, id.0 as usize % BLOCK_SERIES);
        let block = self.blocks.get(block)?;
        Some((*block.tables.get(at)?, block.key(at)))
    }

    /// The key of a series that is there.
    pub(crate) fn key(&self, id: u32) -> &[u8] {
        self.blocks[id as usize / BLOCK_SERIES].key(id as usize % BLOCK_SERIES)
    }

    pub(crate) fn table(&self, id: u32) -> TableId {
        self.blocks[id as usize / BLOCK_SERIES].tables[id as usize % BLOCK_SERIES]
    }

    /// Forgets the keys of a table's series, and frees their memory.
    pub(crate) fn remove_table(&mut self, table: TableId) {
        for block in &mut self.blocks {
            if !block.tables.contains(&table) {
                continue;
            }
            let mut kept = Block::default();
            for (at, owner) in block.tables.iter().enumerate() {
                if *owner != table {
                    kept.bytes.extend_from_slice(block.key(at));
                }
                let end = kept.bytes.len() as u32;
                kept.ends.push(end);
                kept.tables
                    .push(if *owner == table { GONE } else { *owner });
            }
            kept.shrink();
            *block = kept;
        }
        let full = self.blocks.len().saturating_sub(1);
        self.full_bytes = self.blocks[..full].iter().map(Block::memory_bytes).sum();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.full_bytes
            + self.blocks.last().map_or(0, Block::memory_bytes)
            + self.blocks.capacity() * size_of::<Block>()
    }
}
