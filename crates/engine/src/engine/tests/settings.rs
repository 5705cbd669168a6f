//! Settings of tables and fields: how they affect new segments, and from when on.

use super::support::*;
use crate::{EngineError, PageDetail, TableChange, TableSpec};
use marigram_model::FieldValueRef as V;
use marigram_model::{
    ColumnCodec, ColumnId, Compressor, Encoding, FieldType, SeriesIdentity, TableOptions, TagType,
};

const MINUTE: i64 = 60_000_000_000;

fn codec(encoding: Encoding, compressor: Compressor) -> ColumnCodec {
    ColumnCodec {
        encoding: Some(encoding),
        compressor: Some(compressor),
    }
}

/// Table `t` with the fields `x` and `n`, in small pages.
fn spec() -> TableSpec {
    TableSpec {
        name: "t".to_owned(),
        tags: vec![("dev".to_owned(), TagType::String)],
        fields: vec![
            ("x".to_owned(), FieldType::F64),
            ("n".to_owned(), FieldType::I64),
        ],
        codecs: [("x".to_owned(), codec(Encoding::Plain, Compressor::Lz4))].into(),
        options: TableOptions {
            page_bytes: 1024,
            encoding: Some(Encoding::For),
            ..TableOptions::default()
        },
        ..TableSpec::default()
    }
}

/// Flushes `count` rows of one device, from row `from` on.
fn flush_rows(engine: &crate::Engine, from: i64, count: i64) {
    for row in from..from + count {
        let fields = [("x", V::F64(row as f64 / 10.0)), ("n", V::I64(row % 7))];
        store(engine, "t", &[("a", row * MINUTE / 1000, &fields)]);
    }
    engine.flush().unwrap();
}

/// Pages of a column of segment `id`, as (rows, encoding).
fn pages(engine: &crate::Engine, id: u64, column: u32) -> Vec<(u32, String)> {
    let snapshot = engine.snapshot("db", "t").unwrap();
    let table = snapshot.schema().id;
    let views = snapshot.views().iter();
    let all: Vec<PageDetail> = views
        .flat_map(|view| view.pages(table, Some(id)))
        .collect::<Result<_, _>>()
        .unwrap();
    all.iter()
        .filter(|page| page.column == ColumnId(column))
        .map(|page| (page.rows, page.info.form()))
        .collect()
}

fn segments(engine: &crate::Engine) -> Vec<u64> {
    let mut ids: Vec<u64> = engine.segments().iter().map(|s| s.meta.id.0).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn changes_apply_from_the_next_flush_on() {
    let world = World::new(1);
    let engine = world.open_db();
    engine.create_table("db", &spec(), false).unwrap();
    flush_rows(&engine, 0, 300);
    let first = segments(&engine)[0];
    let sizes = |pages: &[(u32, String)]| pages.iter().map(|page| page.0).collect::<Vec<_>>();
    let x = pages(&engine, first, 1);
    assert_eq!(sizes(&x), [128, 128, 44]);
    assert!(x.iter().all(|page| page.1 == "PLAIN+LZ4"), "{x:?}");
    assert_eq!(pages(&engine, first, 2)[0].1, "FOR");

    let options = TableOptions {
        page_bytes: 2048,
        encoding: Some(Encoding::Delta),
        ..spec().options
    };
    let set = TableChange::SetOptions(options);
    engine.alter_table("db", "t", &set).unwrap();
    let other = codec(Encoding::Runs, Compressor::Zstd);
    let set = TableChange::SetCodec("x".to_owned(), other);
    engine.alter_table("db", "t", &set).unwrap();
    assert_eq!(sizes(&pages(&engine, first, 1)), [128, 128, 44]);
    flush_rows(&engine, 300, 300);
    let second = segments(&engine)[1];
    let x = pages(&engine, second, 1);
    assert_eq!(sizes(&x), [256, 44]);
    assert!(x.iter().all(|page| page.1 == "RUNS+ZSTD"), "{x:?}");
    assert_eq!(pages(&engine, second, 2)[0].1, "DELTA");
    let detail = engine.segments()[1].open.detail(None).unwrap();
    assert_eq!((detail.row_groups, detail.pages, detail.nulls), (1, 6, 0));
    assert!(detail.encodings.contains("RUNS+ZSTD"), "{detail:?}");

    // The settings are durable, and a compaction re-encodes everything accordingly.
    drop(engine);
    world.fs.crash();
    let engine = world.open();
    flush_rows(&engine, 600, 10);
    flush_rows(&engine, 610, 10);
    engine.compact().unwrap();
    let merged = segments(&engine)[0];
    let x = pages(&engine, merged, 1);
    assert_eq!(sizes(&x).iter().sum::<u32>(), 620);
    assert!(x.iter().all(|page| page.1 == "RUNS+ZSTD"), "{x:?}");

    // On demand even if there is only one segment already, and with full pages.
    let whole = codec(Encoding::Plain, Compressor::Zstd);
    let set = TableChange::SetCodec("x".to_owned(), whole);
    engine.alter_table("db", "t", &set).unwrap();
    engine.compact_table("db", "t").unwrap();
    let x = pages(&engine, segments(&engine)[0], 1);
    assert_eq!(sizes(&x), [256, 256, 108]);
    assert!(x.iter().all(|page| page.1 == "PLAIN+ZSTD"), "{x:?}");
    assert_eq!(read(&engine, "t").len(), 620);
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let world = World::new(1);
    let engine = world.open_db();
    let unsuited = TableSpec {
        codecs: [("n".to_owned(), codec(Encoding::Alp, Compressor::Lz4))].into(),
        ..spec()
    };
    let error = engine.create_table("db", &unsuited, false).unwrap_err();
    assert!(
        error.to_string().contains("does not suit BIGINT"),
        "{error}"
    );
    let stray = TableSpec {
        codecs: [("nn".to_owned(), ColumnCodec::default())].into(),
        ..spec()
    };
    let error = engine.create_table("db", &stray, false).unwrap_err();
    assert!(matches!(error, EngineError::NotFound { kind: "field", .. }));
    for page_bytes in [0, 1023, (256 << 10) + 1] {
        let mut spec = spec();
        spec.options.page_bytes = page_bytes;
        let error = engine.create_table("db", &spec, false).unwrap_err();
        assert!(error.to_string().contains("1KiB to 256KiB"), "{error}");
    }
    engine.create_table("db", &spec(), false).unwrap();
    let mut options = spec().options;
    options.identity = SeriesIdentity::Sha256;
    let set = TableChange::SetOptions(options);
    let error = engine.alter_table("db", "t", &set).unwrap_err();
    assert!(
        error.to_string().contains("series_identity is fixed"),
        "{error}"
    );
}
