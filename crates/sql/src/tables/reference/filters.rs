//! Which conditions the store of reference tables evaluates exactly as SQL does, with its indexes.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use marigram_reference::{ColumnFilter, FilterOp, ReferenceTable, ReferenceType};

/// The longest list of IN that the store evaluates.
const VALUES_MAX: usize = 1000;

/// A condition as the store evaluates it; `None` if DataFusion has to.
pub(crate) fn column_filter(condition: &Expr, table: &ReferenceTable) -> Option<ColumnFilter> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, value, op) = match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(value, _)) => (column, value, *op),
                (Expr::Literal(value, _), Expr::Column(column)) => (column, value, op.swap()?),
                _ => return None,
            };
            let column = position(&column.name, table)?;
            compared(table, column, filter_op(op)?, std::slice::from_ref(value))
        }
        Expr::InList(list) if !list.negated && list.list.len() <= VALUES_MAX => {
            let Expr::Column(column) = &*list.expr else {
                return None;
            };
            let values = list.list.iter().map(|item| match item {
                Expr::Literal(value, _) => Some(value.clone()),
                _ => None,
            });
            let values: Vec<ScalarValue> = values.collect::<Option<_>>()?;
            let column = position(&column.name, table)?;
            compared(table, column, FilterOp::In, &values)
        }
        Expr::IsNull(tested) => null_test(tested, table, FilterOp::IsNull),
        Expr::IsNotNull(tested) => null_test(tested, table, FilterOp::IsNotNull),
        _ => None,
    }
}

fn position(name: &str, table: &ReferenceTable) -> Option<usize> {
    table.columns.iter().position(|column| column.name == name)
}

fn null_test(tested: &Expr, table: &ReferenceTable, op: FilterOp) -> Option<ColumnFilter> {
    let Expr::Column(column) = tested else {
        return None;
    };
    let column = position(&column.name, table)?;
    let none = ScalarValue::try_new_null(&table.columns[column].kind.data_type()).ok()?;
    Some(ColumnFilter {
        column,
        op,
        values: none.to_array_of_size(0).ok()?,
    })
}

fn compared(
    table: &ReferenceTable,
    column: usize,
    op: FilterOp,
    values: &[ScalarValue],
) -> Option<ColumnFilter> {
    let kind = table.columns[column].kind;
    let is_ordered = match kind {
        ReferenceType::Int2
        | ReferenceType::Int4
        | ReferenceType::Int8
        | ReferenceType::Text
        | ReferenceType::Varchar(_)
        | ReferenceType::Date
        | ReferenceType::Time
        | ReferenceType::Timestamp
        | ReferenceType::TimestampTz => true,
        // Equal ones are stored as equal texts, but the texts have another order.
        ReferenceType::Numeric { .. } | ReferenceType::Uuid => false,
        // Zeros with and without a sign, NaN, spaces at the end, and months of no fixed length; and a boolean is
        // seldom worth an index.
        _ => return None,
    };
    let is_equality = matches!(op, FilterOp::Eq | FilterOp::In);
    let data_type = kind.data_type();
    let fits = |value: &ScalarValue| value.data_type() == data_type && !value.is_null();
    if !(is_ordered || is_equality) || values.is_empty() || !values.iter().all(fits) {
        return None;
    }
    Some(ColumnFilter {
        column,
        op,
        values: ScalarValue::iter_to_array(values.iter().cloned()).ok()?,
    })
}

fn filter_op(op: Operator) -> Option<FilterOp> {
    Some(match op {
        Operator::Eq => FilterOp::Eq,
        Operator::Lt => FilterOp::Lt,
        Operator::LtEq => FilterOp::LtEq,
        Operator::Gt => FilterOp::Gt,
        Operator::GtEq => FilterOp::GtEq,
        _ => return None,
    })
}
