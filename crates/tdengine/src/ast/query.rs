//! SELECT: its sources, windows, groups and limits.

use super::{TaosExpr, TaosName};
use crate::duration::TaosDuration;

/// A query with its order and limits.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosQuery {
    /// What is read.
    pub body: TaosQueryBody,
    /// ORDER BY.
    pub order_by: Vec<TaosOrder>,
    /// SLIMIT: the number of partitions.
    pub partition_limit: Option<TaosLimit>,
    /// LIMIT: the number of rows.
    pub limit: Option<TaosLimit>,
}

/// One SELECT, or several.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosQueryBody {
    /// One SELECT.
    Select(Box<TaosSelect>),
    /// Queries one after the other.
    Union {
        /// The first query.
        first: Box<TaosQuery>,
        /// The others, each with whether it is joined by UNION ALL.
        rest: Vec<(bool, TaosQuery)>,
    },
}

/// A limit and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaosLimit {
    /// How many.
    pub count: u64,
    /// How many are skipped before.
    pub offset: u64,
}

/// One SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosSelect {
    /// DISTINCT.
    pub distinct: bool,
    /// SELECT TAGS: one row for each table.
    pub tags_only: bool,
    /// What is selected.
    pub items: Vec<TaosSelectItem>,
    /// FROM.
    pub from: Option<TaosFrom>,
    /// WHERE.
    pub condition: Option<TaosExpr>,
    /// PARTITION BY.
    pub partition_by: Vec<TaosPartition>,
    /// RANGE(from, to) of INTERP.
    pub range: Option<(TaosExpr, Option<TaosExpr>)>,
    /// EVERY of INTERP.
    pub every: Option<TaosDuration>,
    /// The window.
    pub window: Option<TaosWindow>,
    /// FILL.
    pub fill: Option<TaosFill>,
    /// GROUP BY.
    pub group_by: Vec<TaosExpr>,
    /// HAVING.
    pub having: Option<TaosExpr>,
}

/// A selected expression.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosSelectItem {
    /// The expression.
    pub expr: TaosExpr,
    /// Its text in the statement, which names the column.
    pub text: String,
    /// The name that AS gives.
    pub alias: Option<String>,
}

/// An expression of PARTITION BY.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosPartition {
    /// The expression.
    pub expr: TaosExpr,
    /// Its name.
    pub alias: Option<String>,
}

/// A source of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosFrom {
    /// A table.
    Table {
        /// Its name.
        name: TaosName,
        /// Its name in the query.
        alias: Option<String>,
    },
    /// A query.
    Query {
        /// The query.
        query: Box<TaosQuery>,
        /// Its name.
        alias: Option<String>,
    },
    /// Two sources, side by side.
    Join(Box<TaosJoin>),
}

/// How rows of two sources belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaosJoinKind {
    /// Only rows that belong together.
    Inner,
    /// All rows of the first source.
    Left,
    /// All rows of the second source.
    Right,
    /// All rows.
    Full,
}

/// Two sources side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosJoin {
    /// The first source.
    pub left: TaosFrom,
    /// The second source.
    pub right: TaosFrom,
    /// Which rows stay.
    pub kind: TaosJoinKind,
    /// ON.
    pub condition: Option<TaosExpr>,
}

/// The window of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosWindow {
    /// INTERVAL … SLIDING …
    Interval {
        /// The width.
        width: TaosDuration,
        /// The offset; `auto` is none.
        offset: Option<TaosDuration>,
        /// The distance of windows.
        sliding: Option<TaosDuration>,
    },
    /// SESSION
    Session {
        /// The time.
        time: TaosExpr,
        /// The gap that ends a session.
        gap: TaosDuration,
    },
    /// A window for each run of one state
    State(TaosExpr),
    /// A window from one condition to another
    Event {
        /// What begins a window.
        start: TaosExpr,
        /// What ends it.
        end: TaosExpr,
    },
    /// A window for a number of rows
    Count {
        /// Rows of a window.
        count: u64,
        /// Rows between the beginnings of windows.
        sliding: Option<u64>,
    },
}

/// What stands in windows without rows.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosFill {
    /// Such windows are left out.
    None,
    /// `NULL`, in every window of the range.
    Null {
        /// Also if there are no rows at all.
        forced: bool,
    },
    /// Constants, one for each aggregate.
    Values {
        /// The constants.
        values: Vec<TaosExpr>,
        /// Also if there are no rows at all.
        forced: bool,
    },
    /// The value before.
    Previous,
    /// The value after.
    Next,
    /// On the line between both.
    Linear,
    /// The nearer of both.
    Near,
}

/// An expression of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosOrder {
    /// The expression, a name or the number of a column.
    pub expr: TaosExpr,
    /// Its text in the statement.
    pub text: String,
    /// From the greatest to the smallest.
    pub descending: bool,
    /// NULLS FIRST or NULLS LAST, if it is written.
    pub nulls_first: Option<bool>,
}
