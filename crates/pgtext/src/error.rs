//! Why a text is no time, as one error type.

/// Why a text is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeTextError {
    /// It has none of the forms (SQLSTATE `22007`).
    #[error(
        "'{0}' is no time; times are written such as 2014-07-01 10:15, 2014-07-01T10:15:00.5+02 or \
         2014-07-01 10:15 Europe/Berlin"
    )]
    Form(String),
    /// It has a form, and a part of it does not exist, such as the 31st of June (`22008`).
    #[error("'{0}' is no time: {1}")]
    Range(String, String),
    /// It is a word for a moment, where nobody says what moment it is (`22007`).
    #[error("'{0}' depends on the moment; write now() or an expression of it")]
    Moment(String),
    /// It names a zone that nobody knows (`22023`).
    #[error("time zone '{0}' is not known; zones are named such as Europe/Berlin, UTC or +02:00")]
    Zone(String),
}
