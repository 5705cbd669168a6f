//! Forms of names: folded to the case in which they are looked up, and with marks.
//!
//! The planner requires unique names in a SELECT; a name that several columns have gets a mark. No
//! result and no error shows a mark.

use datafusion::sql::sqlparser::ast::Ident;

/// The name that an identifier denotes.
pub(crate) fn fold_case(ident: &Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}

/// Separates a name from its mark.
const MARK: char = '\u{1f}';

/// A name with a mark.
pub(crate) fn marked(name: &str, number: usize) -> String {
    format!("{name}{MARK}{number}")
}

/// A name without its mark; `None` if it has none.
pub(crate) fn unmarked(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once(MARK)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(name)
}
