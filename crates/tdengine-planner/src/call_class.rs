//! Which functions of many rows there are, and what each makes of them.

/// What a function makes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallClass {
    /// One value of a window.
    Aggregate,
    /// Some rows of a window.
    RowSet,
    /// A value for each row.
    Sequence,
    /// Values at regular times.
    Interpolation,
}

/// The class of a function; `None` for functions of one row.
pub(crate) fn class(name: &str) -> Option<CallClass> {
    Some(match name {
        "count" | "sum" | "avg" | "min" | "max" | "spread" | "stddev" | "stddev_pop"
        | "stddev_samp" | "var_pop" | "var_samp" | "variance" | "first" | "last" | "last_row"
        | "percentile" | "apercentile" | "twa" | "irate" | "elapsed" | "leastsquares" | "mode"
        | "hyperloglog" => CallClass::Aggregate,
        "top" | "bottom" | "sample" | "tail" | "unique" | "histogram" => CallClass::RowSet,
        "diff" | "derivative" | "csum" | "mavg" | "statecount" | "stateduration" => {
            CallClass::Sequence
        }
        "interp" => CallClass::Interpolation,
        _ => return None,
    })
}

/// Whether there is such a function of many rows.
pub(crate) fn is_known(name: &str) -> bool {
    class(name).is_some()
}

/// Whether a function takes its value from one row, whose other columns can be shown.
pub(crate) fn selects_row(name: &str) -> bool {
    matches!(name, "first" | "last" | "last_row" | "min" | "max" | "mode")
        || class(name) == Some(CallClass::RowSet)
}
