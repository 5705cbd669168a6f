//! The tree dialect of IoTDB's SQL: statements as syntax trees.

mod ast;
mod context;
mod cursor;
mod define;
mod expression;
mod expression_text;
mod insert;
mod literal;
mod select;
mod show;
mod statement;
mod time_text;
mod windows;
mod zone_text;

pub use ast::{
    NewTimeseries, ShowTarget, SortKey, TreeAggregate, TreeArithmetic, TreeCall, TreeColumn,
    TreeComparison, TreeExpr, TreeFill, TreeInsert, TreeInsertRow, TreeLiteral, TreeSelect,
    TreeSpan, TreeStatement, TreeWindows,
};
pub use context::TreeSqlContext;
pub use statement::{parse_statement, parse_time};
pub use windows::WindowSequence;

#[cfg(test)]
mod tests;
