//! Views: queries with a name.

use crate::TableId;

/// What a plain view is: a query that is answered anew each time somebody asks. What it says is
/// SQL's affair; the catalog keeps what it reads in place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The query, as it was written.
    pub query: String,
    /// Its columns when it was made: those that it has for ever, in this order.
    pub columns: Vec<ViewColumn>,
    /// The tables and views that it reads, of the same database; ascending.
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
    /// Most views that may be read through one another.
    pub const DEPTH_MAX: usize = 16;
}
