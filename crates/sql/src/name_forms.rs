//! Forms of names: in the case in which they are looked up, and with marks.
//!
//! The planner takes each name of a SELECT once; names that several columns have get a mark. No answer and
//! no error shows one.

use datafusion::sql::sqlparser::ast::Ident;

/// The name that an identifier means.
pub fn fold_case(ident: &Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}

/// Stands between a name and its mark.
const MARK: char = '\u{1f}';

/// A name with a mark.
pub fn marked(name: &str, number: usize) -> String {
    format!("{name}{MARK}{number}")
}

/// A name without its mark; `None` where it has none.
pub fn unmarked(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once(MARK)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(name)
}
