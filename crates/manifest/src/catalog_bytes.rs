//! State and edits of the catalog as bytes: `docs/formats/catalog.md`.
//!
//! Tables and columns end in a list of attributes (`attributes`): settings that are not their
//! defaults, and the place for units, descriptions and valid ranges.

use crate::attributes::{
    no_attributes, put_field_attributes, put_no_attributes, put_table_attributes,
    read_field_attributes, read_table_attributes,
};
use crate::bytes::{MalformedRecord, RecordReader, malformed, put_count, put_text};
use crate::catalog::{Catalog, CatalogEdit, CatalogState};
use crate::record::LoggedState;
use marigram_model::{
    ColumnId, FieldColumn, FieldType, RetentionPolicies, RetentionPolicy, RollupProgress, TableId,
    TableOptions, TableSchema, TagColumn, TagType, TimeRange, TimeSet,
};
use std::sync::Arc;

const CREATE_DATABASE: u8 = 1;
const DROP_DATABASE: u8 = 2;
const PUT_TABLE: u8 = 3;
const DROP_TABLE: u8 = 4;
const PUT_PROGRESS: u8 = 5;
const PUT_POLICIES: u8 = 6;
const PUT_ACCESS: u8 = 7;
const NOTE_REFERENCE_TABLES: u8 = 8;

/// Fewest bytes of a text.
const TEXT_BYTES_MIN: usize = 4;
/// Fewest bytes of a tag: name, type, attributes.
const TAG_BYTES_MIN: usize = 4 + 1 + 2;
/// Fewest bytes of a field: id, name, type, attributes.
const FIELD_BYTES_MIN: usize = 4 + 4 + 1 + 2;
/// Fewest bytes of a table.
const TABLE_BYTES_MIN: usize = 4 + 3 * 4 + 8 + 1 + 4 + 4 + 2;
/// Fewest bytes of the progress of a rollup: id, through, no ranges.
const PROGRESS_BYTES_MIN: usize = 4 + 8 + 4;
/// Fewest bytes of a database's policies: its name, no policies, the default's name.
const POLICIES_BYTES_MIN: usize = 3 * 4;
/// Fewest bytes of a policy: name, no duration, shard duration, replicas, flag.
const POLICY_BYTES_MIN: usize = 4 + 1 + 8 + 4 + 1;
/// The first version that knows rollups.
const ROLLUPS_VERSION: u32 = 3;
/// The first version that knows retention policies.
const POLICIES_VERSION: u32 = 6;
/// The first version that knows users.
const ACCESS_VERSION: u32 = 7;
/// The first version that knows reference tables.
const REFERENCE_VERSION: u32 = 9;
/// Fewest bytes of a record of access: its key, and that it goes.
const ACCESS_BYTES_MIN: usize = 4 + 1;

impl LoggedState for CatalogState {
    const FILE: &'static str = "CATALOG";
    const MAGIC: [u8; 8] = *b"MARICATA";
    const VERSION: u32 = 9;
    const SEALS_TELL: u32 = 4;
    const OWNER_SINCE: Option<u32> = None;
    const COPY: Option<&'static str> = Some(Catalog::COPY);
    type Edit = CatalogEdit;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.table_max.to_le_bytes());
        put_count(self.databases.len(), out);
        self.databases.keys().for_each(|name| put_text(name, out));
        put_count(self.tables.len(), out);
        self.tables.values().for_each(|table| put_table(table, out));
        put_count(self.progress.len(), out);
        for (id, progress) in &self.progress {
            put_progress(*id, progress, out);
        }
        put_count(self.policies.len(), out);
        for (database, policies) in &self.policies {
            put_policies(database, policies, out);
        }
        put_count(self.access.len(), out);
        for (key, record) in &self.access {
            put_access(key, Some(record), out);
        }
        out.push(u8::from(self.has_reference_tables));
    }

    fn decode(reader: &mut RecordReader<'_>, version: u32) -> Result<Self, MalformedRecord> {
        let mut state = Self {
            table_max: reader.u32()?,
            ..Self::default()
        };
        // Built by edits, so that the same rules apply to a snapshot as to them.
        let table_max = std::mem::take(&mut state.table_max);
        for _ in 0..reader.u32_count(TEXT_BYTES_MIN)? {
            state.add(&CatalogEdit::CreateDatabase(reader.text()?))?;
        }
        let mut views = Vec::new();
        for _ in 0..reader.u32_count(TABLE_BYTES_MIN)? {
            let table = Arc::new(table(reader)?);
            // A replaced view may read tables that are younger than it.
            state.check_table(&table).map_err(MalformedRecord)?;
            state.apply(&CatalogEdit::PutTable(Arc::clone(&table)));
            views.extend(table.view.is_some().then_some(table));
        }
        for view in views {
            state.check_reads(&view).map_err(MalformedRecord)?;
        }
        state.check_depth(None).map_err(MalformedRecord)?;
        if state.table_max > table_max {
            return malformed(format!("table {} is above the highest id", state.table_max));
        }
        state.table_max = table_max;
        if version >= ROLLUPS_VERSION {
            for _ in 0..reader.u32_count(PROGRESS_BYTES_MIN)? {
                let (id, progress) = progress(reader)?;
                state.add(&CatalogEdit::PutProgress(id, progress))?;
            }
        }
        if version >= POLICIES_VERSION {
            for _ in 0..reader.u32_count(POLICIES_BYTES_MIN)? {
                let (database, policies) = policies(reader)?;
                state.add(&CatalogEdit::PutPolicies(database, policies))?;
            }
        }
        if version >= ACCESS_VERSION {
            state.add(&CatalogEdit::PutAccess(access(reader)?))?;
        }
        if version >= REFERENCE_VERSION {
            state.has_reference_tables = reader.flag()?;
        }
        Ok(state)
    }

    fn encode_edit(edit: &CatalogEdit, out: &mut Vec<u8>) {
        match edit {
            CatalogEdit::CreateDatabase(name) => {
                out.push(CREATE_DATABASE);
                put_text(name, out);
            }
            CatalogEdit::DropDatabase(name) => {
                out.push(DROP_DATABASE);
                put_text(name, out);
            }
            CatalogEdit::PutTable(table) => {
                out.push(PUT_TABLE);
                put_table(table, out);
            }
            CatalogEdit::DropTable(id) => {
                out.push(DROP_TABLE);
                out.extend_from_slice(&id.0.to_le_bytes());
            }
            CatalogEdit::PutProgress(id, progress) => {
                out.push(PUT_PROGRESS);
                put_progress(*id, progress, out);
            }
            CatalogEdit::PutPolicies(database, policies) => {
                out.push(PUT_POLICIES);
                put_policies(database, policies, out);
            }
            CatalogEdit::PutAccess(records) => {
                out.push(PUT_ACCESS);
                put_count(records.len(), out);
                for (key, record) in records {
                    put_access(key, record.as_deref(), out);
                }
            }
            CatalogEdit::NoteReferenceTables => out.push(NOTE_REFERENCE_TABLES),
        }
    }

    fn decode_edit(
        reader: &mut RecordReader<'_>,
        _version: u32,
    ) -> Result<CatalogEdit, MalformedRecord> {
        Ok(match reader.byte()? {
            CREATE_DATABASE => CatalogEdit::CreateDatabase(reader.text()?),
            DROP_DATABASE => CatalogEdit::DropDatabase(reader.text()?),
            PUT_TABLE => CatalogEdit::PutTable(Arc::new(table(reader)?)),
            DROP_TABLE => CatalogEdit::DropTable(TableId(reader.u32()?)),
            PUT_PROGRESS => {
                let (id, progress) = progress(reader)?;
                CatalogEdit::PutProgress(id, progress)
            }
            PUT_POLICIES => {
                let (database, policies) = policies(reader)?;
                CatalogEdit::PutPolicies(database, policies)
            }
            PUT_ACCESS => CatalogEdit::PutAccess(access(reader)?),
            NOTE_REFERENCE_TABLES => CatalogEdit::NoteReferenceTables,
            other => return malformed(format!("no change of a catalog has the number {other}")),
        })
    }

    fn check(&self, edit: &CatalogEdit) -> Result<(), String> {
        Self::check(self, edit)
    }

    fn apply_checked(&mut self, edit: &CatalogEdit) {
        self.apply(edit);
    }
}

impl CatalogState {
    fn add(&mut self, edit: &CatalogEdit) -> Result<(), MalformedRecord> {
        self.check(edit).map_err(MalformedRecord)?;
        self.apply(edit);
        Ok(())
    }
}

fn put_table(table: &TableSchema, out: &mut Vec<u8>) {
    out.extend_from_slice(&table.id.0.to_le_bytes());
    put_text(&table.database, out);
    put_text(&table.name, out);
    put_text(&table.time_name, out);
    out.extend_from_slice(&table.options.partition_ns.to_le_bytes());
    out.push(u8::from(table.options.ttl_ns.is_some()));
    if let Some(ttl_ns) = table.options.ttl_ns {
        out.extend_from_slice(&ttl_ns.to_le_bytes());
    }
    put_count(table.tags.len(), out);
    for tag in &table.tags {
        put_text(&tag.name, out);
        out.push(tag.kind as u8);
        put_no_attributes(out);
    }
    put_count(table.fields.len(), out);
    for field in &table.fields {
        out.extend_from_slice(&field.id.0.to_le_bytes());
        put_text(&field.name, out);
        out.push(field.kind as u8);
        put_field_attributes(field.codec, out);
    }
    put_table_attributes(table, out);
}

fn put_progress(id: TableId, progress: &RollupProgress, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.0.to_le_bytes());
    out.extend_from_slice(&progress.through_ns.to_le_bytes());
    put_count(progress.touched.ranges().len(), out);
    for range in progress.touched.ranges() {
        out.extend_from_slice(&range.min.to_le_bytes());
        out.extend_from_slice(&range.max.to_le_bytes());
    }
}

fn progress(reader: &mut RecordReader<'_>) -> Result<(TableId, RollupProgress), MalformedRecord> {
    let id = TableId(reader.u32()?);
    let through_ns = reader.i64()?;
    let mut ranges = Vec::new();
    for _ in 0..reader.u32_count(2 * size_of::<i64>())? {
        let (min, max) = (reader.i64()?, reader.i64()?);
        ranges.push(TimeRange { min, max });
    }
    let touched = TimeSet::from_ranges(ranges.iter().copied());
    if touched.ranges() != ranges {
        return malformed(format!("the touched times of rollup {id} are out of order"));
    }
    Ok((
        id,
        RollupProgress {
            through_ns,
            touched,
        },
    ))
}

fn put_access(key: &str, record: Option<&[u8]>, out: &mut Vec<u8>) {
    put_text(key, out);
    out.push(u8::from(record.is_some()));
    if let Some(record) = record {
        put_count(record.len(), out);
        out.extend_from_slice(record);
    }
}

/// New and removed records of access, by key.
type AccessChanges = Vec<(String, Option<Arc<[u8]>>)>;

fn access(reader: &mut RecordReader<'_>) -> Result<AccessChanges, MalformedRecord> {
    let mut records = Vec::new();
    for _ in 0..reader.u32_count(ACCESS_BYTES_MIN)? {
        let key = reader.text()?;
        let record = if reader.flag()? {
            let length = reader.u32_count(1)?;
            Some(Arc::from(reader.take(length)?))
        } else {
            None
        };
        records.push((key, record));
    }
    Ok(records)
}

fn put_policies(database: &str, policies: &RetentionPolicies, out: &mut Vec<u8>) {
    put_text(database, out);
    put_count(policies.policies.len(), out);
    for policy in &policies.policies {
        put_text(&policy.name, out);
        out.push(u8::from(policy.duration_ns.is_some()));
        if let Some(duration_ns) = policy.duration_ns {
            out.extend_from_slice(&duration_ns.to_le_bytes());
        }
        out.extend_from_slice(&policy.shard_duration_ns.to_le_bytes());
        out.extend_from_slice(&policy.replicas.to_le_bytes());
        out.push(u8::from(policy.plain));
    }
    put_text(&policies.default, out);
}

fn policies(
    reader: &mut RecordReader<'_>,
) -> Result<(String, Arc<RetentionPolicies>), MalformedRecord> {
    let database = reader.text()?;
    let mut policies = Vec::new();
    for _ in 0..reader.u32_count(POLICY_BYTES_MIN)? {
        policies.push(RetentionPolicy {
            name: reader.text()?,
            duration_ns: if reader.flag()? {
                Some(reader.i64()?)
            } else {
                None
            },
            shard_duration_ns: reader.i64()?,
            replicas: reader.u32()?,
            plain: reader.flag()?,
        });
    }
    let default = reader.text()?;
    Ok((database, Arc::new(RetentionPolicies { policies, default })))
}

fn table(reader: &mut RecordReader<'_>) -> Result<TableSchema, MalformedRecord> {
    let id = TableId(reader.u32()?);
    let (database, name, time_name) = (reader.text()?, reader.text()?, reader.text()?);
    let partition_ns = reader.i64()?;
    let ttl_ns = if reader.flag()? {
        Some(reader.i64()?)
    } else {
        None
    };
    let mut tags = Vec::new();
    for _ in 0..reader.u32_count(TAG_BYTES_MIN)? {
        let name = reader.text()?;
        let number = reader.byte()?;
        let Some(kind) = TagType::from_number(number) else {
            return malformed(format!("no tag type has the number {number}"));
        };
        no_attributes(reader)?;
        tags.push(TagColumn { name, kind });
    }
    let mut fields = Vec::new();
    for _ in 0..reader.u32_count(FIELD_BYTES_MIN)? {
        let id = ColumnId(reader.u32()?);
        let name = reader.text()?;
        let number = reader.byte()?;
        let Some(kind) = FieldType::from_number(number) else {
            return malformed(format!("no field type has the number {number}"));
        };
        let codec = read_field_attributes(reader)?;
        fields.push(FieldColumn {
            id,
            name,
            kind,
            codec,
        });
    }
    let attributes = read_table_attributes(reader)?;
    let options = TableOptions {
        partition_ns,
        ttl_ns,
        ..attributes.options
    };
    Ok(TableSchema {
        id,
        database,
        name,
        time_name,
        tags,
        fields,
        options,
        rollup: attributes.rollup.map(Arc::new),
        view: attributes.view.map(Arc::new),
        dropped_max: attributes.dropped_max,
        declared: attributes.declared,
    })
}
