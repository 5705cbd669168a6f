//! Tests of the catalog.

use super::disk;
use crate::{Catalog, CatalogEdit, CatalogState, LogOptions, ManifestError};
use marigram_codec::{Compressor, Encoding};
use marigram_model::{
    ColdCodec, ColumnCodec, ColumnId, FieldColumn, FieldType, RetentionPolicies, RetentionPolicy,
    Rollup, RollupProgress, SeriesIdentity, TableColumn, TableId, TableOptions, TableSchema,
    TagColumn, TagType, TimeRange, TimeSet, View, ViewColumn,
};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

pub(super) fn table(id: u32, name: &str) -> TableSchema {
    let fields = FieldType::ALL
        .into_iter()
        .zip(1..)
        .map(|(kind, id)| FieldColumn {
            id: ColumnId(id),
            name: match kind {
                // The name that the type had when the golden files were written.
                FieldType::F32 => "field FLOAT".to_owned(),
                kind => format!("field {kind}"),
            },
            kind,
            codec: ColumnCodec::default(),
        });
    let tags = [TagType::String, TagType::I64, TagType::Bool];
    TableSchema {
        id: TableId(id),
        database: "plant".to_owned(),
        name: name.to_owned(),
        time_name: "ts".to_owned(),
        tags: tags
            .map(|kind| TagColumn {
                name: format!("tag {kind}"),
                kind,
            })
            .to_vec(),
        fields: fields.collect(),
        options: TableOptions {
            partition_ns: 3_600_000_000_000,
            ttl_ns: Some(i64::MAX),
            ..TableOptions::default()
        },
        rollup: None,
        view: None,
        dropped_max: 0,
        declared: Vec::new(),
    }
}

fn put(table: TableSchema) -> CatalogEdit {
    CatalogEdit::PutTable(Arc::new(table))
}

/// [`edits`], and tables with every setting.
pub(super) fn edits_with_settings() -> Vec<CatalogEdit> {
    let mut tuned = table(4, "tuned");
    tuned.options = TableOptions {
        page_bytes: 4096,
        encoding: Some(Encoding::Plain),
        compressor: Some(Compressor::Zstd),
        cold_codec: ColdCodec::Auto,
        identity: SeriesIdentity::Sha256,
        ..tuned.options
    };
    for field in &mut tuned.fields {
        field.codec = ColumnCodec {
            encoding: (field.id.0 % 2 == 0).then_some(Encoding::Runs),
            compressor: (field.id.0 % 3 == 0).then_some(Compressor::Lz4),
        };
    }
    let mut changed = tuned.clone();
    changed.options.page_bytes = 256 << 10;
    changed.options.encoding = None;
    changed.fields[0].codec.compressor = Some(Compressor::Uncompressed);
    let mut edits = edits();
    edits.extend([put(tuned), put(changed)]);
    edits
}

/// [`edits_with_settings`], and rollups that have come some way.
pub(super) fn edits_with_rollups() -> Vec<CatalogEdit> {
    let rollup = |id, name: &str, refresh_ns| TableSchema {
        rollup: Some(Arc::new(Rollup {
            source: TableId(1),
            query: "SELECT time_bucket('1 minute', ts) …".to_owned(),
            cell_ns: 60_000_000_000,
            cell_origin_ns: -1,
            refresh_ns,
            lag_ns: 5,
        })),
        ..table(id, name)
    };
    let ranges = [(i64::MIN, -5), (0, 59), (120, 179)];
    let progress = |through_ns, ranges: &[(i64, i64)]| RollupProgress {
        through_ns,
        touched: ranges
            .iter()
            .map(|(min, max)| TimeRange {
                min: *min,
                max: *max,
            })
            .fold(TimeSet::default(), |mut all, range| {
                all.insert(range);
                all
            }),
    };
    let mut edits = edits_with_settings();
    edits.extend([
        put(rollup(5, "by minute", 10)),
        CatalogEdit::PutProgress(TableId(5), progress(600, &ranges)),
        put(rollup(6, "gone", 10)),
        CatalogEdit::PutProgress(TableId(6), progress(1, &[])),
        CatalogEdit::DropTable(TableId(6)),
        put(rollup(5, "by minute", 20)),
        CatalogEdit::PutProgress(TableId(5), progress(i64::MAX, &ranges[1..])),
    ]);
    edits
}

/// A view that reads these.
fn view(id: u32, name: &str, reads: &[u32]) -> TableSchema {
    let column = |name: &str| ViewColumn {
        of_query: format!("{name} of the query"),
        name: name.to_owned(),
    };
    TableSchema {
        tags: Vec::new(),
        fields: Vec::new(),
        options: TableOptions::default(),
        view: Some(Arc::new(View {
            query: "SELECT * FROM \"ventil-größe\"".to_owned(),
            columns: vec![column("ts"), column("größe")],
            reads: reads.iter().copied().map(TableId).collect(),
        })),
        ..table(id, name)
    }
}

/// The table 3 without the fields that are dropped one after the other; the id of the last one.
fn without(dropped: u32) -> TableSchema {
    let mut table = table(9, "shrinking");
    table
        .fields
        .retain(|field| field.id.0 < 8 && field.id.0 != dropped);
    table.dropped_max = dropped.max(9);
    table
}

/// [`edits_with_rollups`], views, and a table that has lost fields.
pub(super) fn edits_with_views() -> Vec<CatalogEdit> {
    let mut edits = edits_with_rollups();
    edits.extend([
        put(view(7, "plain", &[3])),
        put(view(8, "of both", &[3, 7])),
        put(table(9, "shrinking")),
        put(without(9)),
        put(without(5)),
        // Made anew over a younger table.
        put(view(7, "plain", &[3, 9])),
    ]);
    edits
}

/// [`edits_with_views`], and retention policies.
pub(super) fn edits_with_policies() -> Vec<CatalogEdit> {
    let mut edits = edits_with_views();
    let policy = |name: &str, duration_ns, plain| RetentionPolicy {
        name: name.to_owned(),
        duration_ns,
        shard_duration_ns: 3_600_000_000_000,
        replicas: 2,
        plain,
    };
    let policies = RetentionPolicies {
        policies: vec![
            policy("woche", Some(604_800_000_000_000), false),
            policy("always", None, true),
        ],
        default: "woche".to_owned(),
    };
    let put = |database: &str, policies| {
        CatalogEdit::PutPolicies(database.to_owned(), Arc::new(policies))
    };
    let none = RetentionPolicies {
        policies: Vec::new(),
        default: String::new(),
    };
    edits.extend([
        put("plant", RetentionPolicies::default()),
        CatalogEdit::CreateDatabase("gone".to_owned()),
        put("gone", policies.clone()),
        CatalogEdit::DropDatabase("gone".to_owned()),
        put("plant", policies),
        CatalogEdit::CreateDatabase("bare".to_owned()),
        put("bare", none),
    ]);
    edits
}

/// With users and tokens: what version 7 can hold.
pub(super) fn edits_with_access() -> Vec<CatalogEdit> {
    let mut edits = edits_with_policies();
    let put = |records: &[(&str, Option<&[u8]>)]| {
        let records = records.iter();
        let records = records.map(|(key, record)| ((*key).to_owned(), record.map(Arc::from)));
        CatalogEdit::PutAccess(records.collect())
    };
    edits.extend([
        put(&[("user:root", Some(b"{}")), ("state", Some(b"1"))]),
        put(&[
            ("user:j\u{fc}rgen", Some(b"{\"a\":1}")),
            ("state", Some(b"2")),
        ]),
        put(&[]),
        put(&[("user:root", Some(b"{\"b\":2}")), ("user:nobody", None)]),
        put(&[("token:1", Some(b""))]),
        put(&[("token:1", None), ("user:eve", Some(b"{}"))]),
    ]);
    edits
}

/// The table 10 with its columns declared in this order: of the time, three tags, and fields from 1.
fn declared(columns: &[TableColumn]) -> TableSchema {
    TableSchema {
        declared: columns.to_vec(),
        ..table(10, "declared")
    }
}

/// The columns of [`declared`]: fields before the time before tags.
fn fields_first() -> Vec<TableColumn> {
    let fields = (1..=9).rev().map(|id| TableColumn::Field(ColumnId(id)));
    let tags = (0..3).map(TableColumn::Tag);
    fields.chain([TableColumn::Time]).chain(tags).collect()
}

/// [`edits_with_access`], and tables whose columns have an order.
pub(super) fn edits_with_order() -> Vec<CatalogEdit> {
    let mut edits = edits_with_access();
    let mut grown = declared(&fields_first());
    grown.tags.push(TagColumn {
        name: "new tag".to_owned(),
        kind: TagType::I64,
    });
    grown.declared.push(TableColumn::Tag(3));
    edits.extend([put(declared(&fields_first())), put(grown)]);
    edits
}

/// [`edits_with_order`], and that there are reference tables; noted twice, it is so once.
pub(super) fn edits_with_reference() -> Vec<CatalogEdit> {
    let mut edits = edits_with_order();
    edits.extend([
        CatalogEdit::NoteReferenceTables,
        CatalogEdit::NoteReferenceTables,
    ]);
    edits
}

#[test]
fn an_order_names_each_column_once() {
    let mut state = CatalogState::default();
    state.apply(&CatalogEdit::CreateDatabase("plant".to_owned()));
    let check = |columns: &[TableColumn]| state.check(&put(declared(columns)));
    let all = fields_first();
    assert_eq!(check(&all), Ok(()));
    let (mut twice, mut unknown) = (all.clone(), all.clone());
    twice[0] = TableColumn::Time;
    unknown[0] = TableColumn::Field(ColumnId(99));
    for bad in [&all[1..], &twice, &unknown] {
        let reason = check(bad).unwrap_err();
        assert!(
            reason.contains("does not name each of them once"),
            "{reason}"
        );
    }
}

#[test]
fn records_of_access_need_a_key() {
    let state = CatalogState::default();
    let put = |key: &str| CatalogEdit::PutAccess(vec![(key.to_owned(), None)]);
    assert!(state.check(&put("")).is_err());
    assert!(state.check(&put("user:x")).is_ok());
}

#[test]
fn policies_need_their_database_and_go_with_it() {
    let mut state = CatalogState::default();
    let put = |default: &str| {
        let policies = RetentionPolicies {
            default: default.to_owned(),
            ..RetentionPolicies::default()
        };
        CatalogEdit::PutPolicies("plant".to_owned(), Arc::new(policies))
    };
    assert!(
        state.check(&put("autogen")).is_err(),
        "there is no database"
    );
    state.apply(&CatalogEdit::CreateDatabase("plant".to_owned()));
    assert!(state.check(&put("autogen")).is_ok());
    assert!(state.check(&put("no such policy")).is_err());
    state.apply(&put("autogen"));
    assert_eq!(state.policies.len(), 1);
    state.apply(&CatalogEdit::DropDatabase("plant".to_owned()));
    assert!(state.policies.is_empty());
}

/// A history without settings: what version 1 could hold.
pub(super) fn edits() -> Vec<CatalogEdit> {
    let mut grown = table(1, "pump");
    grown.tags.push(TagColumn {
        name: "new tag".to_owned(),
        kind: TagType::I64,
    });
    grown.fields.push(FieldColumn {
        id: grown.next_column(),
        name: "new field".to_owned(),
        kind: FieldType::F32,
        codec: ColumnCodec::default(),
    });
    let plain = TableSchema {
        options: TableOptions::default(),
        tags: Vec::new(),
        fields: Vec::new(),
        ..table(3, "ventil-größe")
    };
    vec![
        CatalogEdit::CreateDatabase("plant".to_owned()),
        CatalogEdit::CreateDatabase("other".to_owned()),
        put(table(1, "pump")),
        put(table(2, "valve")),
        put(grown.clone()),
        put(plain),
        CatalogEdit::DropTable(TableId(2)),
        put(TableSchema {
            name: "pump 2".to_owned(),
            ..grown
        }),
        CatalogEdit::DropDatabase("other".to_owned()),
    ]
}

#[test]
fn databases_and_tables_are_found_again() {
    let (sim, fs, dir) = disk(1);
    for rewrite_bytes_min in [0, 1 << 20] {
        let options = LogOptions { rewrite_bytes_min };
        let mut catalog = Catalog::open_with(Arc::clone(&fs), &dir, options).unwrap();
        assert_eq!(catalog.next_table(), TableId(1));
        for edit in edits_with_views() {
            catalog.commit(&edit).unwrap();
            let state = catalog.state().clone();
            sim.crash();
            assert_eq!(Catalog::read(&*fs, &dir).unwrap(), state);
            catalog = Catalog::open_with(Arc::clone(&fs), &dir, options).unwrap();
            assert_eq!(catalog.state(), &state, "after {edit:?}");
        }
        assert_eq!(catalog.databases().collect::<Vec<_>>(), ["plant"]);
        let names: Vec<_> = catalog.tables().map(|table| table.name.as_str()).collect();
        let expected = [
            "pump 2",
            "ventil-größe",
            "tuned",
            "by minute",
            "plain",
            "of both",
            "shrinking",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            catalog.state().table("plant", "pump 2").unwrap().id,
            TableId(1)
        );
        assert_eq!(catalog.state().table("plant", "pump"), None);
        assert_eq!(catalog.next_table(), TableId(10));
        fs.remove(&dir.join("CATALOG")).unwrap();
    }
}

#[test]
fn dropping_a_database_drops_its_tables_and_never_gives_their_ids_again() {
    let (_, fs, dir) = disk(1);
    let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    for edit in &edits()[..4] {
        catalog.commit(edit).unwrap();
    }
    catalog
        .commit(&CatalogEdit::DropDatabase("plant".to_owned()))
        .unwrap();
    assert_eq!(catalog.tables().count(), 0);
    assert_eq!(Catalog::open(fs, &dir).unwrap().next_table(), TableId(3));
}

#[test]
fn contradictions_are_refused() {
    let (_, fs, dir) = disk(1);
    let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    for edit in &edits()[..4] {
        catalog.commit(edit).unwrap();
    }
    let before = catalog.state().clone();
    let changed = |change: &dyn Fn(&mut TableSchema)| {
        let mut table = table(1, "pump");
        change(&mut table);
        put(table)
    };
    let bad = [
        CatalogEdit::CreateDatabase("plant".to_owned()),
        CatalogEdit::CreateDatabase(String::new()),
        CatalogEdit::DropDatabase("nowhere".to_owned()),
        CatalogEdit::DropTable(TableId(9)),
        put(table(3, "pump")),
        put(TableSchema {
            database: "nowhere".to_owned(),
            ..table(3, "new")
        }),
        put(TableSchema {
            database: "other".to_owned(),
            ..table(1, "pump")
        }),
        changed(&|table| table.name.clear()),
        changed(&|table| table.name = "valve".to_owned()),
        changed(&|table| drop(table.tags.pop())),
        changed(&|table| table.tags[0].kind = TagType::Bool),
        changed(&|table| drop(table.fields.remove(4))),
        changed(&|table| table.fields[0].kind = FieldType::Bytes),
        changed(&|table| table.fields[0].id = ColumnId(0)),
        changed(&|table| table.fields.swap(0, 1)),
        changed(&|table| table.options.partition_ns = 1),
        changed(&|table| table.options.page_bytes = 8),
        changed(&|table| table.options.identity = SeriesIdentity::Sha256),
        changed(&|table| table.fields[0].codec.encoding = Some(Encoding::Alp)),
    ];
    for edit in bad {
        let error = catalog.commit(&edit).unwrap_err();
        assert!(
            matches!(error, ManifestError::Refused { .. }),
            "{edit:?}: {error}"
        );
    }
    catalog.commit(&CatalogEdit::DropTable(TableId(2))).unwrap();
    let error = catalog.commit(&put(table(2, "valve"))).unwrap_err();
    assert!(error.to_string().contains("given before"), "{error}");
    assert_eq!(before.databases.len(), catalog.state().databases.len());
}

#[test]
fn a_rollup_stays_what_it_is_and_its_source_stays_with_it() {
    let (_, fs, dir) = disk(1);
    let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    for edit in &edits_with_rollups() {
        catalog.commit(edit).unwrap();
    }
    let rollup = TableSchema::clone(&catalog.state().tables[&TableId(5)]);
    let kept_from = rollup.rollup.clone().unwrap();
    let of = |changed: Rollup| {
        put(TableSchema {
            rollup: Some(Arc::new(changed)),
            ..rollup.clone()
        })
    };
    let kept_from = || Rollup::clone(&kept_from);
    let other = |source| Rollup {
        source: TableId(source),
        ..kept_from()
    };
    let bad = [
        CatalogEdit::DropTable(TableId(1)),
        CatalogEdit::PutProgress(TableId(1), RollupProgress::default()),
        CatalogEdit::PutProgress(TableId(9), RollupProgress::default()),
        of(other(3)),
        of(other(5)),
        of(Rollup {
            query: String::new(),
            ..kept_from()
        }),
        of(Rollup {
            cell_ns: 1,
            ..kept_from()
        }),
        of(Rollup {
            refresh_ns: 0,
            ..kept_from()
        }),
        put(TableSchema {
            rollup: None,
            ..rollup.clone()
        }),
        put(TableSchema {
            rollup: Some(Arc::new(other(9))),
            ..table(9, "of nothing")
        }),
        put(TableSchema {
            rollup: Some(Arc::new(other(5))),
            ..table(9, "of a rollup")
        }),
    ];
    for edit in bad {
        let error = catalog.commit(&edit).unwrap_err();
        assert!(
            matches!(error, ManifestError::Refused { .. }),
            "{edit:?}: {error}"
        );
    }
    catalog.commit(&CatalogEdit::DropTable(TableId(5))).unwrap();
    assert_eq!(catalog.state().progress.len(), 0);
    catalog.commit(&CatalogEdit::DropTable(TableId(1))).unwrap();
}

#[test]
fn what_a_view_reads_stays_and_no_view_reads_itself() {
    let (_, fs, dir) = disk(1);
    let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    for edit in &edits_with_views() {
        catalog.commit(edit).unwrap();
    }
    let bad = [
        CatalogEdit::DropTable(TableId(3)),
        CatalogEdit::DropTable(TableId(7)),
        put(view(7, "plain", &[7])),
        put(view(7, "plain", &[8])),
        put(view(10, "of nothing", &[10])),
        put(view(10, "of nothing", &[11])),
        put(table(7, "plain")),
        put(TableSchema {
            view: None,
            ..view(7, "plain", &[3])
        }),
        put(TableSchema {
            fields: table(1, "").fields,
            ..view(10, "with rows", &[3])
        }),
        put(TableSchema {
            view: view(1, "", &[3]).view,
            ..table(9, "shrinking")
        }),
    ];
    for edit in bad {
        let error = catalog.commit(&edit).unwrap_err();
        let is_refused = matches!(error, ManifestError::Refused { .. });
        assert!(is_refused, "{edit:?}: {error}");
    }
    // As many views through one another as may be.
    let deepest = 9 + View::DEPTH_MAX as u32;
    for id in 10..=deepest {
        let read = if id == 10 { 7 } else { id - 1 };
        let edit = put(view(id, &format!("view {id}"), &[read]));
        let committed = catalog.commit(&edit);
        assert_eq!(committed.is_ok(), id < deepest, "{id}: {committed:?}");
    }
    catalog.commit(&CatalogEdit::DropTable(TableId(8))).unwrap();
}

#[test]
fn the_number_of_a_dropped_field_is_never_given_again() {
    let (_, fs, dir) = disk(1);
    let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
    for edit in &edits_with_views() {
        catalog.commit(edit).unwrap();
    }
    let now = TableSchema::clone(&catalog.state().tables[&TableId(9)]);
    assert_eq!((now.next_column(), now.dropped_max), (ColumnId(10), 9));
    for (id, is_dropped) in [(0, false), (1, false), (5, true), (9, true), (10, false)] {
        assert_eq!(now.is_dropped(ColumnId(id)), is_dropped, "{id}");
    }
    let changed = |change: &dyn Fn(&mut TableSchema)| {
        let mut table = now.clone();
        change(&mut table);
        put(table)
    };
    let bad = [
        // Fields that were dropped come back.
        put(table(9, "shrinking")),
        changed(&|new| new.fields.extend(table(9, "").fields.pop())),
        // What was dropped is forgotten, or more than there ever was.
        changed(&|new| new.dropped_max = 8),
        changed(&|new| new.dropped_max = 99),
        changed(&|new| drop(new.fields.pop())).clone(),
    ];
    for (nth, edit) in bad.iter().enumerate() {
        let committed = catalog.commit(edit);
        // The last one drops a field whose number is below the highest: as it should be.
        assert_eq!(committed.is_ok(), nth == 4, "{edit:?}: {committed:?}");
    }
}

proptest! {
    /// Records whose checksum is right and whose contents are not.
    #[test]
    fn any_contents_of_records_are_a_state_or_an_error(
        (record, at, byte, cut) in (0..27_usize, any::<usize>(), any::<u8>(), 0..10_usize)
    ) {
        let (_, fs, dir) = disk(1);
        let mut catalog = Catalog::open(Arc::clone(&fs), &dir).unwrap();
        for edit in &edits_with_views() {
 catalog.commit(edit).unwrap();
 }
        let good = crate::log::read_file(&*fs.open(&dir.join("CATALOG")).unwrap()).unwrap();
        let (mut bytes, mut rest, mut nth) = (Vec::new(), &good[..], 0);
        while let marigram_codec::frame::FrameRead::Frame { payload, len } = marigram_codec::frame::read(rest) {
            let mut payload = payload.to_vec();
            if nth == record {
                let at = at % payload.len();
                payload[at] = byte;
                payload.truncate(payload.len() - cut.min(payload.len()));
            }
            marigram_codec::frame::write(&payload, &mut bytes);
            rest = &rest[len..];
            nth += 1;
        }
        let _ = CatalogState::from_log(Path::new("CATALOG"), &bytes);
    }
}
