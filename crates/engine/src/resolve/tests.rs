//! Tests of resolving batches against schemas, without an engine.

use super::{ResolveOutcome, ResolvedBatch, resolve};
use crate::catalog::blank;
use marigram_model::{
    BatchBuilder, ColumnId, FieldColumn, FieldType, FieldValueRef as V, Limits, TableId,
    TableSchema, TagColumn, TagType, TagValueRef, WriteBatch,
};

fn schema() -> TableSchema {
    let mut schema = blank("db", "t", TableId(1));
    schema.tags.push(TagColumn {
        name: "dev".to_owned(),
        kind: TagType::String,
    });
    schema.fields.push(FieldColumn {
        id: ColumnId(1),
        name: "x".to_owned(),
        kind: FieldType::F64,
        codec: marigram_model::ColumnCodec::default(),
    });
    schema
}

fn batch(fields: &[(&str, V<'_>)]) -> WriteBatch {
    let mut builder = BatchBuilder::new("t");
    let slot = builder.slot([("dev", TagValueRef::String("a"))]);
    builder.row(slot, 1);
    for (name, value) in fields {
        builder.field(name, *value);
    }
    builder.finish()
}

fn done(schema: &TableSchema, batch: &WriteBatch) -> ResolvedBatch {
    match resolve(schema, batch, true, false, 0).unwrap() {
        ResolveOutcome::Done(resolved) => resolved,
        ResolveOutcome::Grow(growth) => panic!("nothing is missing, and yet {growth:?}"),
    }
}

#[test]
fn columns_come_in_the_order_of_their_ids() {
    let mut schema = schema();
    schema.fields.push(FieldColumn {
        id: ColumnId(2),
        name: "y".to_owned(),
        kind: FieldType::I64,
        codec: marigram_model::ColumnCodec::default(),
    });
    let resolved = done(&schema, &batch(&[("y", V::I64(1)), ("x", V::F64(1.0))]));
    let ids: Vec<u32> = resolved.columns.iter().map(|(id, _)| id.0).collect();
    assert_eq!(ids, vec![1, 2]);
    assert!(resolved.rejects.is_empty());
}

#[test]
fn what_is_missing_is_asked_for_with_its_type() {
    let rows = batch(&[("x", V::F64(1.0)), ("new", V::Bool(true))]);
    let ResolveOutcome::Grow(growth) = resolve(&schema(), &rows, true, false, 0).unwrap() else {
        panic!("'new' is missing");
    };
    assert_eq!(growth.fields, vec![("new".to_owned(), FieldType::Bool)]);
    assert!(growth.tags.is_empty());
    assert!(resolve(&schema(), &rows, false, false, 0).is_err());
}

#[test]
fn the_time_column_is_no_field() {
    let resolved = done(
        &schema(),
        &batch(&[("x", V::F64(1.0)), ("time", V::I64(1))]),
    );
    let reasons = resolved.rejects.into_reasons();
    assert_eq!(
        reasons,
        vec![(
            0,
            "'time' is a field here (BIGINT), and the time column of table 't'".to_owned()
        )]
    );
}

#[test]
fn a_full_table_takes_no_more_fields() {
    let mut schema = schema();
    schema.fields = (1..=Limits::FIELDS_MAX as u32)
        .map(|id| FieldColumn {
            id: ColumnId(id),
            name: format!("f{id}"),
            kind: FieldType::F64,
            codec: marigram_model::ColumnCodec::default(),
        })
        .collect();
    let resolved = done(
        &schema,
        &batch(&[("f1", V::F64(1.0)), ("one_more", V::F64(1.0))]),
    );
    assert!(
        resolved.rejects.into_reasons()[0]
            .1
            .contains("one more than")
    );
}

#[test]
fn values_over_the_limit_are_rejected() {
    let mut schema = schema();
    schema.fields.push(FieldColumn {
        id: ColumnId(2),
        name: "s".to_owned(),
        kind: FieldType::String,
        codec: marigram_model::ColumnCodec::default(),
    });
    let long = "x".repeat(Limits::VALUE_BYTES_MAX + 1);
    let resolved = done(&schema, &batch(&[("s", V::String(&long))]));
    assert_eq!(resolved.rejects.into_reasons().len(), 1);
    let fits = "x".repeat(Limits::VALUE_BYTES_MAX);
    assert!(
        done(&schema, &batch(&[("s", V::String(&fits))]))
            .rejects
            .is_empty()
    );
}
