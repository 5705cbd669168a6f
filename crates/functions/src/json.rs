//! PostgreSQL's functions that make JSON: `to_json`, `json_build_object`, `json_build_array`,
//! `row_to_json`, the same with `jsonb`, and those to which `json_agg` and `json_object_agg` are rewritten; and those that read it: casts to `json` and `jsonb`, and the
//! lists of a value's [`parts`].
//!
//! JSON is a text here. A value that is JSON already, such as the answer of another of these functions, is
//! passed as a structure with the single field [`JSON_FIELD`], so that it is not quoted again.

mod binary;
mod columns;
mod edits;
mod escapes;
mod parts;
mod steps;
mod text_objects;
mod udf;

use datafusion::logical_expr::ScalarUDF;
pub use edits::json_edit;
pub use parts::{JSON_PARTS, JSON_READERS};
pub use steps::json_operation;
pub use text_objects::TEXT_OBJECTS;
pub use udf::{JSON_LISTS, JSON_OBJECT_LISTS};

/// The name of the field of a structure that holds JSON; no user's field has it.
pub const JSON_FIELD: &str = "\u{1f}json";

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    [
        udf::functions(),
        parts::functions(),
        text_objects::functions(),
    ]
    .concat()
}
