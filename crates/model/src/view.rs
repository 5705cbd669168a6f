//! Views: named queries.

use crate::TableId;

/// A plain view: a query that runs each time the view is used. Only SQL interprets the query; the
/// catalog makes sure that what the query reads stays in place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The query, as written.
    pub query: String,
    /// Its columns when it was created: it keeps them for ever, in this order.
    pub columns: Vec<ViewColumn>,
    /// The tables and views that it reads, in the same database; ascending.
    pub reads: Vec<TableId>,
}

/// A column of a view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ViewColumn {
    /// Its name in the query.
    pub of_query: String,
    /// Its name in the view.
    pub name: String,
}

impl View {
    /// Most views that may be nested.
    pub const DEPTH_MAX: usize = 16;
}
