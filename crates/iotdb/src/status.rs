//! IoTDB's status codes, and faults that carry one.

use crate::responses::StatusMessage;
use thiserror::Error;

/// A status code of IoTDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusCode(pub i32);

impl StatusCode {
    /// All is done.
    pub const SUCCESS: Self = Self(200);
    /// The server does not have that dialect of SQL.
    pub const UNSUPPORTED_DIALECT: Self = Self(205);
    /// The server does not have that operation.
    pub const UNSUPPORTED: Self = Self(300);
    /// A statement failed.
    pub const EXECUTE_STATEMENT: Self = Self(301);
    /// Parts of the request failed; the parts say which.
    pub const MULTIPLE: Self = Self(302);
    /// A parameter is wrong.
    pub const ILLEGAL_PARAMETER: Self = Self(303);
    /// The server failed.
    pub const INTERNAL: Self = Self(305);
    /// There is no such database.
    pub const DATABASE_NOT_EXIST: Self = Self(500);
    /// There is such a database already, or one in or around it.
    pub const DATABASE_ALREADY_EXISTS: Self = Self(501);
    /// There is no such timeseries.
    pub const PATH_NOT_EXIST: Self = Self(508);
    /// A path is malformed.
    pub const ILLEGAL_PATH: Self = Self(509);
    /// Timeseries cannot have that form.
    pub const METADATA: Self = Self(507);
    /// Nothing can be written.
    pub const READ_ONLY: Self = Self(600);
    /// Rows were not written.
    pub const WRITE_PROCESS: Self = Self(605);
    /// Rows were not written, and may be sent again later.
    pub const WRITE_REJECTED: Self = Self(606);
    /// A value has another type than its timeseries.
    pub const TYPE_MISMATCH: Self = Self(614);
    /// A statement is malformed.
    pub const SQL_PARSE: Self = Self(700);
    /// A statement means nothing.
    pub const SEMANTIC: Self = Self(701);
    /// The time zone does not exist.
    pub const SET_TIME_ZONE: Self = Self(703);
    /// There is no such query.
    pub const NO_SUCH_QUERY: Self = Self(714);
    /// Too many requests run.
    pub const TOO_MANY_QUERIES: Self = Self(717);
    /// The query needs more memory than there is.
    pub const NO_MEMORY: Self = Self(719);
    /// The query took too long.
    pub const QUERY_TIMEOUT: Self = Self(720);
    /// The user or the password is wrong.
    pub const WRONG_LOGIN: Self = Self(801);
    /// The client did not say who it is.
    pub const NOT_LOGIN: Self = Self(802);
    /// The user may not do that.
    pub const NO_PERMISSION: Self = Self(803);
}

/// Codes and the SQLSTATE of the same idea, in which errors pass through the database.
const SQLSTATES: [(StatusCode, &str); 19] = [
    (StatusCode::SQL_PARSE, "42601"),
    (StatusCode::UNSUPPORTED, "0A000"),
    (StatusCode::ILLEGAL_PATH, "42602"),
    (StatusCode::PATH_NOT_EXIST, "42P01"),
    (StatusCode::PATH_NOT_EXIST, "42703"),
    (StatusCode::DATABASE_NOT_EXIST, "3D000"),
    (StatusCode::DATABASE_ALREADY_EXISTS, "42P04"),
    (StatusCode::METADATA, "42P16"),
    (StatusCode::ILLEGAL_PARAMETER, "22023"),
    (StatusCode::SEMANTIC, "42000"),
    (StatusCode::SEMANTIC, "42804"),
    (StatusCode::SEMANTIC, "42883"),
    (StatusCode::SET_TIME_ZONE, "22009"),
    (StatusCode::TYPE_MISMATCH, "42846"),
    (StatusCode::READ_ONLY, "25006"),
    (StatusCode::NO_MEMORY, "53200"),
    (StatusCode::QUERY_TIMEOUT, "57014"),
    (StatusCode::NO_PERMISSION, "42501"),
    (StatusCode::NOT_LOGIN, "28P01"),
];

impl StatusCode {
    /// The SQLSTATE in which a fault passes through the database.
    pub fn sqlstate(self) -> &'static str {
        let mut all = SQLSTATES.iter();
        all.find(|(code, _)| *code == self)
            .map_or("22023", |(_, sqlstate)| sqlstate)
    }

    /// The code of a SQLSTATE.
    pub fn from_sqlstate(sqlstate: &str) -> Self {
        let mut all = SQLSTATES.iter();
        let found = all.find(|(_, known)| *known == sqlstate);
        found.map_or(Self::EXECUTE_STATEMENT, |(code, _)| *code)
    }
}

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct IotDbFault {
    /// IoTDB's code.
    pub code: StatusCode,
    /// What is wrong, for people.
    pub message: String,
}

impl IotDbFault {
    /// A fault.
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A parameter is wrong.
    pub fn parameter(message: impl Into<String>) -> Self {
        Self::new(StatusCode::ILLEGAL_PARAMETER, message)
    }

    /// A path is wrong.
    pub fn path(message: impl Into<String>) -> Self {
        Self::new(StatusCode::ILLEGAL_PATH, message)
    }

    /// A statement means nothing.
    pub fn semantic(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SEMANTIC, message)
    }

    /// The server does not have that.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED, message)
    }

    /// The fault as the text of an error that passes through the database: `[701] …`.
    pub fn to_text(&self) -> String {
        format!("[{}] {}", self.code.0, self.message)
    }

    /// Reads [`to_text`](Self::to_text). A text without a code gets that of its SQLSTATE.
    pub fn from_text(text: &str, sqlstate: &str) -> Self {
        let coded = || {
            let (code, message) = text.strip_prefix('[')?.split_once("] ")?;
            Some(Self::new(StatusCode(code.parse().ok()?), message))
        };
        coded().unwrap_or_else(|| Self::new(StatusCode::from_sqlstate(sqlstate), text))
    }

    /// The fault as part of an answer.
    pub fn status(&self) -> StatusMessage<'_> {
        StatusMessage {
            code: self.code.0,
            message: Some(&self.message),
            parts: None,
        }
    }
}

impl StatusMessage<'_> {
    /// The status of what was done.
    pub const SUCCESS: Self = Self {
        code: StatusCode::SUCCESS.0,
        message: None,
        parts: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_pass_as_texts() {
        let fault = IotDbFault::semantic("[1] it means nothing");
        assert_eq!(fault.to_text(), "[701] [1] it means nothing");
        assert_eq!(IotDbFault::from_text(&fault.to_text(), "22023"), fault);
        let other = IotDbFault::from_text("no such table", "42P01");
        assert_eq!(other.code, StatusCode::PATH_NOT_EXIST);
        assert_eq!(other.message, "no such table");
    }
}
