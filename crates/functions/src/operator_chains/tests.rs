//! Chains compute what trees of operators compute.

use super::*;
use crate::arithmetic::CheckedArithmetic;
use crate::bounded::BoundFunctions;
use arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    UInt64Array,
};
use arrow::util::pretty::pretty_format_batches;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{LogicalPlan, binary_expr, col, placeholder};
use datafusion::prelude::{SessionConfig, SessionContext};

/// More than one call takes.
const LONG: usize = 150;

fn rows() -> RecordBatch {
    let large = Int64Array::from(vec![Some(7), None, Some(-3), Some(i64::MAX / 2)]);
    let small = Int32Array::from(vec![Some(1), Some(2), None, Some(-4)]);
    let f = Float64Array::from(vec![Some(0.1), Some(1e16), Some(-2.5), None]);
    let d = Decimal128Array::from(vec![Some(125), Some(-1), None, Some(99_999)]);
    let d = d.with_precision_and_scale(10, 2).unwrap();
    let unsigned = UInt64Array::from(vec![Some(1), Some(u64::MAX / 4), None, Some(3)]);
    let s = StringArray::from(vec![Some("a"), Some(""), None, Some("é")]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(large)),
        ("n", Arc::new(small)),
        ("f", Arc::new(f)),
        ("d", Arc::new(d)),
        ("u", Arc::new(unsigned)),
        ("s", Arc::new(s)),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn context(has_chains: bool) -> SessionContext {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    let mut builder = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_analyzer_rule(Arc::new(BoundFunctions::new(pool)))
        .with_analyzer_rule(Arc::new(CheckedArithmetic));
    if has_chains {
        let planners = builder.expr_planners().get_or_insert_default();
        planners.insert(0, Arc::new(OperatorChains));
    }
    let context = SessionContext::new_with_state(builder.build());
    context.register_batch("t", rows()).unwrap();
    context
}

/// The values of an expression, its name and its type; or its error.
async fn answer(context: &SessionContext, expression: &str) -> std::result::Result<String, String> {
    let sql = format!("SELECT {expression} FROM t");
    let frame = context.sql(&sql).await.map_err(|error| error.to_string())?;
    let field = frame.schema().field(0);
    let head = format!("{} {}", field.name(), field.data_type());
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    Ok(format!(
        "{head}\n{}",
        pretty_format_batches(&batches).unwrap()
    ))
}

/// The most levels of an expression of a plan.
fn depth(plan: &LogicalPlan) -> usize {
    fn levels(expr: &Expr) -> usize {
        let mut deepest = 0;
        let visited = expr.apply_children(|child| {
            deepest = deepest.max(levels(child));
            Ok(TreeNodeRecursion::Continue)
        });
        visited.unwrap();
        deepest + 1
    }
    plan.expressions().iter().map(levels).max().unwrap_or(0)
}

/// Trees are deep; a test's own thread has a small stack.
fn with_stack(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(work);
    };
    thread.spawn(run).unwrap().join().unwrap();
}

/// `first`, and then the steps in turn.
fn chain(first: &str, steps: &[&str], operators: usize) -> String {
    let steps = steps.iter().cycle().take(operators);
    std::iter::once(&first).chain(steps).copied().collect()
}

/// Checks that a chain has the same name, type, values and errors as the tree, and succeeds if it is `expect_ok`.
async fn check_equal(expression: &str, expect_ok: bool, is_flat: bool) {
    let (flat, deep) = (context(true), context(false));
    let sql = format!("SELECT {expression} FROM t");
    let plan = flat.state().create_logical_plan(&sql).await.unwrap();
    assert_eq!(depth(&plan) < OPERATORS_MIN, is_flat, "{expression}");
    let found = answer(&flat, expression).await;
    assert_eq!(found.is_ok(), expect_ok, "{expression}: {found:?}");
    assert_eq!(found, answer(&deep, expression).await, "{expression}");
}

#[test]
fn chains_compute_what_trees_compute() {
    with_stack(async {
        // The order of these matters.
        let ordered = [" + 1e16", " - f", " * 0.5", " - 1e15", " + 0.1"];
        for expression in [
            chain("f", &ordered, LONG),
            chain("i", &[" + n", " - 3", " + i", " - i"], LONG),
            chain("n", &[" - n", " + 1", " * n"], LONG),
            // The type changes on the way.
            chain("n", &[" + n"], 70) + &chain("", &[" + i", " - f", " - i"], LONG),
            chain("d", &[" + d", " - 1", " - d"], LONG),
            chain("d", &[" + d"], 80) + &chain("", &[" - f"], 80),
            chain("i", &[" + 1"], 90) + " + NULL" + &chain("", &[" + 1"], 20),
            chain("NULL", &[" + n", " - NULL"], LONG),
            chain("i", &[" + n * 2", " - (n - 1)", " + abs(n)"], LONG),
            chain("(1 + i)", &[" + CASE WHEN n > 1 THEN n ELSE 2 END"], LONG),
            chain("u", &[" + u", " - u"], LONG),
            chain("u", &[" + 1", " - n"], LONG),
            chain("1", &[" + 1"], LONG),
            chain("s", &[" || 'x'", " || s", " || i", " || n"], LONG),
            chain("s", &[" || 'x'", " || NULL"], LONG),
            chain("i || s", &[" || n", " || i"], LONG),
        ] {
            check_equal(&expression, true, true).await;
        }
    });
}

#[test]
fn chains_fail_as_trees_fail() {
    with_stack(async {
        for expression in [
            // It does not fit on the way, and would at the end.
            chain("i", &[" + 0"], 80) + " + 9223372036854775807 - 9223372036854775807",
            chain("i", &[" + 0"], 80) + " - 9223372036854775807 + 9223372036854775807",
            chain("f", &[" * 1e100", " * 1.5"], LONG),
            chain("u", &[" * u"], LONG),
        ] {
            check_equal(&expression, false, true).await;
        }
        // Two numbers are no text, however many texts follow.
        let context = context(true);
        assert!(answer(&context, "i || n").await.is_err());
        let long = answer(&context, &chain("i || n", &[" || s"], LONG)).await;
        assert!(long.is_err(), "{long:?}");
    });
}

#[test]
fn others_stay_trees() {
    with_stack(async {
        let days = chain("DATE '2024-01-01'", &[" + INTERVAL '1 day'"], 100);
        check_equal(&days, true, false).await;
        check_equal(&chain("f", &[" / 1.5"], LONG), true, false).await;
        // The sums are a chain, whose operands are small trees.
        let sums = chain("n", &[" % 5", " + 7", " / 2", " * 3"], LONG);
        check_equal(&sums, true, true).await;
    });
}

#[test]
fn a_text_literal_of_a_chain_is_a_number() {
    with_stack(async {
        let expression = chain("i", &[" + 1"], 70) + " + '2'";
        let found = answer(&context(true), &expression).await.unwrap();
        assert!(
            found.contains("| 79 ") && found.contains("| 69 "),
            "{found}"
        );
    });
}

#[test]
fn thousands_of_operands_have_few_levels() {
    with_stack(async {
        let context = context(true);
        for (expression, expected) in [
            (
                chain("1.0", &[" + i", " - n"], 4000),
                4000.0 / 2.0 * 6.0 + 1.0,
            ),
            (chain("length(s", &[" || s"], 4000) + ")", 4001.0),
        ] {
            let sql = format!("SELECT CAST({expression} AS DOUBLE) AS v FROM t LIMIT 1");
            let plan = context.state().create_logical_plan(&sql).await.unwrap();
            let levels = depth(&plan);
            assert!(levels < OPERATORS_MIN * 2, "{levels}");
            let frame = context.execute_logical_plan(plan).await.unwrap();
            let batches = frame.collect().await.unwrap();
            let found = pretty_format_batches(&batches).unwrap().to_string();
            assert!(found.contains(&format!("| {expected:.1} ")), "{found}");
        }
    });
}

/// Chains operands as the planner does; returns how many operators it accepts.
fn operators_accepted(operand: &Expr, ops: &[(BinaryOperator, Operator)]) -> usize {
    let schema = DFSchema::try_from(rows().schema().as_ref().clone()).unwrap();
    let mut tree = operand.clone();
    for (done, (sql, op)) in ops.iter().cycle().take(4 * TREE_MAX).enumerate() {
        let raw = RawBinaryExpr {
            op: sql.clone(),
            left: tree,
            right: operand.clone(),
        };
        tree = match OperatorChains.plan_binary_op(raw, &schema) {
            Ok(PlannerResult::Planned(chain)) => chain,
            Ok(PlannerResult::Original(raw)) => binary_expr(raw.left, *op, raw.right),
            Err(error) => {
                assert!(error.to_string().contains("more than 512"), "{error}");
                return done;
            }
        };
    }
    4 * TREE_MAX
}

#[test]
fn a_tree_of_unknown_types_has_a_limit() {
    with_stack(async {
        let plus = [(BinaryOperator::Plus, Operator::Plus)];
        let divided = [
            (BinaryOperator::Multiply, Operator::Multiply),
            (BinaryOperator::Divide, Operator::Divide),
        ];
        let bits = [
            (BinaryOperator::BitwiseOr, Operator::BitwiseOr),
            (BinaryOperator::Modulo, Operator::Modulo),
        ];
        for ops in [&plus[..], &divided, &bits] {
            let known = cast(placeholder("$1"), DataType::Int64);
            for operand in [col("i"), known] {
                assert_eq!(operators_accepted(&operand, ops), 4 * TREE_MAX, "{ops:?}");
            }
            // The type of a parameter is not known yet.
            let accepted = operators_accepted(&placeholder("$1"), ops);
            assert_eq!(accepted, TREE_MAX, "{ops:?}");
        }
        // Neither a number nor a text, and known.
        let days = Expr::Literal(ScalarValue::new_interval_dt(1, 0), None);
        assert_eq!(operators_accepted(&days, &plus), 4 * TREE_MAX);
    });
}

#[test]
fn a_tree_of_numbers_has_casts() {
    with_stack(async {
        let context = context(true);
        let sql = format!("SELECT {} FROM t", chain("f", &[" / f", " * f"], LONG));
        let plan = context.state().create_logical_plan(&sql).await.unwrap();
        let mut casts = 0;
        for expr in plan.expressions() {
            let visited = expr.apply(|part| {
                casts += usize::from(matches!(part, Expr::Cast(_)));
                Ok(TreeNodeRecursion::Continue)
            });
            visited.unwrap();
        }
        assert_eq!(casts, (LONG - 1) / CAST_EVERY);
    });
}
