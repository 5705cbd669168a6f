//! Compares predicates with the sets that they denote.

use super::*;
use datafusion::logical_expr::{col, lit};
use marigram_model::{ColumnId, TableId, TableOptions, TagColumn};

fn schema() -> TableSchema {
    TableSchema {
        id: TableId(1),
        database: "d".into(),
        name: "t".into(),
        time_name: "time".into(),
        tags: vec![
            TagColumn {
                name: "dev".into(),
                kind: TagType::String,
            },
            TagColumn {
                name: "unit".into(),
                kind: TagType::I64,
            },
        ],
        fields: vec![
            FieldColumn {
                id: ColumnId(1),
                name: "x".into(),
                kind: FieldType::F64,
                codec: marigram_model::ColumnCodec::default(),
            },
            FieldColumn {
                id: ColumnId(2),
                name: "y".into(),
                kind: FieldType::F32,
                codec: marigram_model::ColumnCodec::default(),
            },
        ],
        options: TableOptions::default(),
        rollup: None,
        view: None,
        dropped_max: 0,
        declared: Vec::new(),
    }
}

fn time_literal(ns: i64) -> Expr {
    lit(ScalarValue::TimestampNanosecond(Some(ns), None))
}

fn exact(expr: &Expr) -> PredicateRows {
    match classify(expr, &schema()) {
        PredicateClass::Exact(part) => part,
        other => panic!("{expr} is {other:?}"),
    }
}

#[test]
fn time_ranges_are_exact() {
    let range = |expr: Expr| exact(&expr).range;
    assert_eq!(
        range(col("time").gt(time_literal(5))),
        TimeRange {
            min: 6,
            max: i64::MAX
        }
    );
    assert_eq!(
        range(time_literal(5).gt(col("time"))),
        TimeRange {
            min: i64::MIN,
            max: 4
        }
    );
    assert_eq!(
        range(col("time").eq(time_literal(5))),
        TimeRange { min: 5, max: 5 }
    );
    assert_eq!(
        range(col("time").between(time_literal(1), time_literal(9))),
        TimeRange { min: 1, max: 9 }
    );
    assert_eq!(
        range(!col("time").lt(time_literal(5))),
        TimeRange {
            min: 5,
            max: i64::MAX
        }
    );
    assert!(range(col("time").gt(time_literal(i64::MAX))).is_empty());
    let touching = col("time")
        .lt(time_literal(5))
        .or(col("time").gt_eq(time_literal(5)));
    assert_eq!(range(touching), TimeRange::ALL);
}

#[test]
fn a_day_is_all_its_times() {
    let date = Expr::Cast(Cast::new(Box::new(col("time")), DataType::Date32));
    let day = lit(ScalarValue::Date32(Some(1)));
    let part = exact(&date.clone().eq(day.clone()));
    assert_eq!(
        part.range,
        TimeRange {
            min: DAY_NS,
            max: 2 * DAY_NS - 1
        }
    );
    assert_eq!(exact(&date.gt(day)).range.min, 2 * DAY_NS);
}

#[test]
fn tags_are_exact_and_nulls_are_not_true() {
    let filter = |expr: Expr| format!("{:?}", exact(&expr).tags);
    assert_eq!(filter(col("dev").eq(lit("a"))), r#"In(0, [String("a")])"#);
    let not = r#"And([Not(In(0, [String("a")])), IsNotNull(0)])"#;
    assert_eq!(filter(col("dev").not_eq(lit("a"))), not);
    assert_eq!(filter(!col("dev").eq(lit("a"))), not);
    assert_eq!(
        filter(col("unit").in_list(vec![lit(7_i64)], false)),
        "In(1, [I64(7)])"
    );
    let null = lit(ScalarValue::Utf8(None));
    assert_eq!(filter(col("dev").in_list(vec![null.clone()], true)), "None");
    assert_eq!(filter(col("dev").eq(null)), "None");
    assert_eq!(filter(col("dev").is_null()), "IsNull(0)");
    let or = col("dev").eq(lit("a")).or(col("unit").eq(lit(1_i64)));
    assert_eq!(filter(or), r#"Or([In(0, [String("a")]), In(1, [I64(1)])])"#);
}

#[test]
fn other_predicates_over_tags_are_evaluated_per_series() {
    let longer = datafusion::functions::unicode::expr_fn::character_length(col("dev"));
    let longer = longer.gt(lit(3));
    assert!(matches!(
        classify(&longer, &schema()),
        PredicateClass::PerSeries
    ));
    let odd = col("dev").like(lit("a\\b"));
    assert!(matches!(
        classify(&odd, &schema()),
        PredicateClass::PerSeries
    ));
    let mixed = col("dev").like(lit("a%")).or(col("x").gt(lit(1.0)));
    assert!(matches!(
        classify(&mixed, &schema()),
        PredicateClass::Unknown
    ));
}

#[test]
fn patterns_and_ranges_are_tests_of_values() {
    let filter = |expr: Expr| format!("{:?}", exact(&expr).tags);
    assert_eq!(
        filter(col("dev").like(lit("a%"))),
        r#"Matches(0, Prefix("a"))"#
    );
    assert_eq!(
        filter(col("dev").not_like(lit("a%"))),
        r#"And([Not(Matches(0, Prefix("a"))), IsNotNull(0)])"#
    );
    assert_eq!(
        filter(!col("dev").ilike(lit("a_"))),
        r#"And([Not(Matches(0, Regex(Regex("^a.$")))), IsNotNull(0)])"#
    );
    let regex = |op, pattern| {
        let (dev, pattern) = (Box::new(col("dev")), Box::new(lit(pattern)));
        Expr::BinaryExpr(BinaryExpr::new(dev, op, pattern))
    };
    assert_eq!(
        filter(regex(Operator::RegexMatch, "7$")),
        r#"Matches(0, Regex(Regex("7$")))"#
    );
    let broken = regex(Operator::RegexMatch, "(");
    assert!(matches!(
        classify(&broken, &schema()),
        PredicateClass::PerSeries
    ));
    assert_eq!(
        filter(col("unit").gt(lit(7_i64))),
        "Matches(1, Range(Excluded(I64(7)), Unbounded))"
    );
    assert_eq!(
        filter(lit("m").gt_eq(col("dev"))),
        r#"Matches(0, Range(Unbounded, Included(String("m"))))"#
    );
}

#[test]
fn a_disjunction_of_series_and_times_is_a_superset() {
    let a = col("dev").eq(lit("a")).and(col("time").lt(time_literal(5)));
    let b = col("dev").eq(lit("b")).and(col("time").gt(time_literal(9)));
    let PredicateClass::Inexact(part) = classify(&a.or(b), &schema()) else {
        panic!("inexact")
    };
    assert_eq!(part.range, TimeRange::ALL);
    assert_eq!(
        format!("{:?}", part.tags),
        r#"Or([In(0, [String("a")]), In(0, [String("b")])])"#
    );
}

#[test]
fn values_give_bounds_that_never_lose_a_row() {
    let bound = |expr: Expr| bounds(&expr, &schema()).pop().unwrap();
    assert_eq!(bound(col("x").gt(lit(3.0))).min, Some(FieldValue::F64(3.0)));
    assert_eq!(
        bound(col("x").gt_eq(lit(0.0))).min,
        Some(FieldValue::F64(-0.0))
    );
    assert_eq!(
        bound(col("x").lt(lit(-0.0))).max,
        Some(FieldValue::F64(0.0))
    );
    let wide = Expr::Cast(Cast::new(Box::new(col("y")), DataType::Float64));
    let Some(FieldValue::F32(min)) = bound(wide.clone().gt(lit(0.1))).min else {
        panic!("f32")
    };
    let Some(FieldValue::F32(max)) = bound(wide.lt(lit(0.1))).max else {
        panic!("f32")
    };
    assert!(f64::from(min) <= 0.1 && f64::from(max) >= 0.1);
    assert!(bounds(&col("x").gt(lit(f64::NAN)), &schema()).is_empty());
    assert!(bounds(&col("x").not_eq(lit(1.0)), &schema()).is_empty());
}

/// `IS [NOT] DISTINCT FROM NULL` asks for NULLs; every other comparison with NULL is never true.
#[test]
fn distinct_from_null_asks_for_nulls() {
    let compared = |name: &str, op, null: ScalarValue| {
        let expr = datafusion::logical_expr::binary_expr(col(name), op, lit(null));
        exact(&expr)
    };
    let texts = || ScalarValue::Utf8(None);
    let (distinct, same) = (Operator::IsDistinctFrom, Operator::IsNotDistinctFrom);
    assert!(matches!(
        compared("dev", distinct, texts()).tags,
        TagFilter::IsNotNull(0)
    ));
    assert!(matches!(
        compared("dev", same, texts()).tags,
        TagFilter::IsNull(0)
    ));
    assert!(compared("dev", Operator::Eq, texts()).is_none());
    let times = || ScalarValue::TimestampNanosecond(None, None);
    assert_eq!(compared("time", distinct, times()).range, TimeRange::ALL);
    assert!(compared("time", same, times()).is_none());
    let negated =
        !datafusion::logical_expr::binary_expr(col("unit"), same, lit(ScalarValue::Int64(None)));
    assert!(matches!(exact(&negated).tags, TagFilter::IsNotNull(1)));
}
