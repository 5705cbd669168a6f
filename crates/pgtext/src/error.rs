//! Why a text is not a valid time, as one error type.

/// Why a text is not a valid time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeTextError {
    /// It has no known format (SQLSTATE `22007`).
    #[error(
        "'{0}' is not a valid time; write times such as 2014-07-01 10:15, 2014-07-01T10:15:00.5+02 or \
         2014-07-01 10:15 Europe/Berlin"
    )]
    Form(String),
    /// It has a known format, but names something that does not exist, such as the 31st of June
    /// (`22008`).
    #[error("'{0}' is not a valid time: {1}")]
    Range(String, String),
    /// It is a word for a moment, and no moment is given (`22007`).
    #[error("'{0}' depends on the moment; write now() or an expression of it")]
    Moment(String),
    /// It names an unknown zone (`22023`).
    #[error("time zone '{0}' is not known; write zones such as Europe/Berlin, UTC or +02:00")]
    Zone(String),
}
