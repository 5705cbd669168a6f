//! `pg_get_constraintdef`, `pg_get_indexdef` and `pg_get_expr`: texts about reference tables.

use super::reference_text::{ObjectKind, constraints, indexes, oid};
use datafusion::arrow::array::{Array, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::{as_boolean_array, as_int64_array};
use datafusion::common::{Result, exec_err};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use marigram_access::AccessRights;
use marigram_reference::{ReferenceStore, ReferenceTable};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What the functions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DescribedText {
    /// `pg_get_constraintdef(oid [, pretty])`
    Constraint,
    /// `pg_get_indexdef(oid [, column, pretty])`
    Index,
    /// `pg_get_expr(expression, relation [, pretty])`: the expression, which is kept as text.
    Expression,
}

impl DescribedText {
    fn name(self) -> &'static str {
        match self {
            Self::Constraint => "pg_get_constraintdef",
            Self::Index => "pg_get_indexdef",
            Self::Expression => "pg_get_expr",
        }
    }
}

/// Registers the functions with a session of a database.
///
/// # Errors
/// If the registry refuses one.
pub(crate) fn register(
    state: &mut SessionState,
    store: &ReferenceStore,
    database: &str,
    rights: &Arc<AccessRights>,
) -> Result<()> {
    for what in [
        DescribedText::Constraint,
        DescribedText::Index,
        DescribedText::Expression,
    ] {
        let arguments = (1..=3).map(TypeSignature::Any).collect();
        let function = DescribingFunction {
            what,
            store: store.clone(),
            database: database.to_owned(),
            rights: Arc::clone(rights),
            // A definition changes with its table.
            signature: Signature::one_of(arguments, Volatility::Volatile),
        };
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    Ok(())
}

/// A function over the reference tables of a database.
#[derive(Debug)]
struct DescribingFunction {
    what: DescribedText,
    store: ReferenceStore,
    database: String,
    rights: Arc<AccessRights>,
    signature: Signature,
}

impl PartialEq for DescribingFunction {
    fn eq(&self, other: &Self) -> bool {
        (self.what, &self.database) == (other.what, &other.database)
    }
}

impl Eq for DescribingFunction {}

impl Hash for DescribingFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.what, &self.database).hash(state);
    }
}

impl DescribingFunction {
    fn tables(&self) -> Vec<Arc<ReferenceTable>> {
        if self.rights.see(&self.database) {
            self.store.tables(&self.database)
        } else {
            Vec::new()
        }
    }
}

/// The definition of the constraint with an OID.
fn constraint(all: &[Arc<ReferenceTable>], wanted: i64, is_pretty: bool) -> Option<String> {
    all.iter().find_map(|table| {
        let found = constraints(table, all)
            .into_iter()
            .find(|(number, _)| i64::from(oid(table, ObjectKind::Constraint, *number)) == wanted);
        Some(found?.1.definition(table, is_pretty))
    })
}

/// The definition of the index with an OID, or its column with a number from 1.
fn index(all: &[Arc<ReferenceTable>], wanted: i64, column: i64) -> Option<String> {
    all.iter().find_map(|table| {
        let mut found = indexes(table).into_iter().enumerate();
        let (_, index) = found
            .find(|(number, _)| i64::from(oid(table, ObjectKind::Index, *number)) == wanted)?;
        let Some(place) = usize::try_from(column).ok()?.checked_sub(1) else {
            return Some(index.definition(table));
        };
        let name = table.names_of(index.columns).get(place).copied();
        Some(name.map(marigram_model::quoted).unwrap_or_default())
    })
}

impl ScalarUDFImpl for DescribingFunction {
    fn name(&self) -> &str {
        self.what.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(first) = arrays.first() else {
            return exec_err!("{} needs an argument", self.name());
        };
        if self.what == DescribedText::Expression {
            return Ok(ColumnarValue::Array(cast(first, &DataType::Utf8)?));
        }
        let all = self.tables();
        let oids = cast(first, &DataType::Int64)?;
        let oids = as_int64_array(&oids)?;
        let texts: StringArray = if self.what == DescribedText::Constraint {
            let pretty = arrays.get(1).map(|pretty| cast(pretty, &DataType::Boolean));
            let pretty = pretty.transpose()?;
            let pretty = pretty
                .as_ref()
                .map(|pretty| as_boolean_array(pretty))
                .transpose()?;
            let is_pretty =
                |row: usize| pretty.is_some_and(|pretty| pretty.is_valid(row) && pretty.value(row));
            let of_row = |(row, oid): (usize, Option<i64>)| constraint(&all, oid?, is_pretty(row));
            oids.iter().enumerate().map(of_row).collect()
        } else {
            let columns = arrays.get(1).map(|columns| cast(columns, &DataType::Int64));
            let columns = columns.transpose()?;
            let columns = columns
                .as_ref()
                .map(|columns| as_int64_array(columns))
                .transpose()?;
            let column = |row: usize| {
                let columns = columns.filter(|columns| columns.is_valid(row));
                columns.map_or(0, |columns| columns.value(row))
            };
            let of_row = |(row, oid): (usize, Option<i64>)| index(&all, oid?, column(row));
            oids.iter().enumerate().map(of_row).collect()
        };
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}
