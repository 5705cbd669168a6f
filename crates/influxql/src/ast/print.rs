//! Clauses that several statements print in the same way.

use crate::quote::{QuotedIdent, write_list};
use std::fmt::{self, Display, Formatter};

/// ` ON database`, unless it is the request's database.
pub(super) fn on(f: &mut Formatter<'_>, database: &str) -> fmt::Result {
    if database.is_empty() {
        return Ok(());
    }
    write!(f, " ON {}", QuotedIdent(database))
}

/// A keyword and a list, unless the list is empty.
pub(super) fn list<T: Display>(f: &mut Formatter<'_>, keyword: &str, items: &[T]) -> fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    write!(f, " {keyword} ")?;
    write_list(f, items, ", ")
}

/// A keyword and a value, if there is one.
pub(super) fn optional<T: Display>(
    f: &mut Formatter<'_>,
    keyword: &str,
    value: Option<&T>,
) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {keyword} {value}"))
}

/// A keyword and a number above zero.
pub(super) fn count(f: &mut Formatter<'_>, keyword: &str, count: u64) -> fmt::Result {
    if count == 0 {
        return Ok(());
    }
    write!(f, " {keyword} {count}")
}
