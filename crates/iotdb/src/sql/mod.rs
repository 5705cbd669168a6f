//! The tree dialect of IoTDB's SQL: statements as syntax trees.

mod ast;
mod condition;
mod context;
mod cursor;
mod define;
mod insert;
mod literal;
mod select;
mod show;
mod statement;
mod time_text;
mod zone_text;

pub use ast::{
    NewTimeseries, ShowTarget, SortKey, TreeAggregate, TreeColumn, TreeComparison, TreeCondition,
    TreeFill, TreeFunction, TreeInsert, TreeInsertRow, TreeLiteral, TreeOperand, TreeSelect,
    TreeSpan, TreeStatement, TreeWindows,
};
pub use context::TreeSqlContext;
pub use statement::parse_statement;

#[cfg(test)]
mod tests;
