//! Errors as gRPC statuses: a code, our words, and SQLSTATE in the details.
//!
//! The details are `google.rpc.Status` with `ErrorInfo` (domain `marigram`, metadata `sqlstate` and
//! `position`) and, where a retry helps, `RetryInfo`. The header `marigram-sqlstate` repeats the
//! SQLSTATE for clients that do not read details.

use crate::failures::RequestFailure;
use crate::http::HttpError;
use marigram_protocol::flight::{ArrowMessageError, TicketError};
use marigram_service::ServiceError;
use prost::Message;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::time::Duration;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// Bytes of a message. It travels twice in headers, of which some clients take 8 KiB in all: there, a
/// byte beyond ASCII takes three, and one of the details four thirds.
const MESSAGE_BYTES_MAX: usize = 1500;

/// SQLSTATE of a request that breaks the protocol.
const PROTOCOL_VIOLATION: &str = "08P01";
/// SQLSTATE of what is not supported.
const UNSUPPORTED: &str = "0A000";

/// An error to send to a client.
#[derive(Clone, Debug)]
pub(super) struct FlightFault {
    /// The code.
    pub code: Code,
    /// A sentence for people.
    pub message: String,
    /// PostgreSQL's SQLSTATE.
    pub sqlstate: &'static str,
    position: Option<usize>,
    retry_after: Option<Duration>,
}

impl FlightFault {
    /// An error.
    pub(super) fn new(code: Code, sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            sqlstate,
            position: None,
            retry_after: None,
        }
    }

    /// The request does not follow the protocol.
    pub(super) fn malformed(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, PROTOCOL_VIOLATION, message)
    }

    /// The server does not offer this.
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, UNSUPPORTED, message)
    }

    /// The limit on running requests is reached.
    pub(super) fn too_many() -> Self {
        let message = "too many requests are running; this one had no effect; send it again";
        Self::new(Code::Unavailable, "53300", message).retry(Duration::from_secs(1))
    }

    /// The limit on open connections is reached.
    pub(super) fn no_slot() -> Self {
        let message = "as many connections as connections_max allows are open; this request had no \
                       effect; send it again";
        Self::new(Code::Unavailable, "53300", message).retry(Duration::from_secs(1))
    }

    /// The memory for requests is full.
    pub(super) fn no_memory() -> Self {
        let message =
            "requests and answers fill the memory set aside for them; send it again later";
        Self::new(Code::Unavailable, "53200", message).retry(Duration::from_secs(1))
    }

    fn retry(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The same error as one of the log.
    pub(super) fn to_failure(&self) -> RequestFailure {
        RequestFailure {
            code: self.sqlstate,
            error: self.message.clone(),
            statement: None,
        }
    }

    /// The HTTP status that stands for the error in metrics and the log.
    pub(super) fn http_status(&self) -> u16 {
        match self.code {
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
            Code::Unauthenticated => 401,
            Code::PermissionDenied => 403,
            Code::NotFound => 404,
            Code::AlreadyExists => 409,
            Code::Cancelled => 499,
            Code::Unimplemented => 501,
            Code::Unavailable | Code::ResourceExhausted => 503,
            _ => 500,
        }
    }

    /// The status that the client gets.
    pub(super) fn to_status(&self) -> Status {
        let message = &self.message[..self.message.floor_char_boundary(MESSAGE_BYTES_MAX)];
        let mut headers = MetadataMap::new();
        headers.insert(
            "marigram-sqlstate",
            MetadataValue::from_static(self.sqlstate),
        );
        let details = Bytes::from(self.details(message).encode_to_vec());
        Status::with_details_and_metadata(self.code, message, details, headers)
    }

    fn details(&self, message: &str) -> RpcStatus {
        let mut metadata = HashMap::from([("sqlstate".to_owned(), self.sqlstate.to_owned())]);
        if let Some(position) = self.position {
            metadata.insert("position".to_owned(), position.to_string());
        }
        let info = ErrorInfo {
            reason: format!("SQLSTATE_{}", self.sqlstate),
            domain: "marigram".to_owned(),
            metadata,
        };
        let mut details = vec![RpcDetail::new("google.rpc.ErrorInfo", &info)];
        if let Some(after) = self.retry_after {
            let info = RetryInfo {
                retry_delay: Some(RpcDuration {
                    seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                    nanos: after.subsec_nanos() as i32,
                }),
            };
            details.push(RpcDetail::new("google.rpc.RetryInfo", &info));
        }
        RpcStatus {
            code: self.code as i32,
            // Clients in Go show this one only.
            message: message.to_owned(),
            details,
        }
    }
}

impl From<ServiceError> for FlightFault {
    fn from(error: ServiceError) -> Self {
        let code = match &error {
            ServiceError::Invalid { sqlstate, .. } if *sqlstate == UNSUPPORTED => {
                Code::Unimplemented
            }
            ServiceError::Invalid { .. } | ServiceError::Violation(_) => Code::InvalidArgument,
            ServiceError::NotFound(..) => Code::NotFound,
            ServiceError::AlreadyExists(..) => Code::AlreadyExists,
            ServiceError::Busy { .. } => Code::Unavailable,
            ServiceError::Unauthenticated(_) => Code::Unauthenticated,
            ServiceError::Forbidden(_) => Code::PermissionDenied,
            ServiceError::ChangesRefused(_) | ServiceError::ReadOnly(_) => Code::FailedPrecondition,
            ServiceError::Cancelled(_) => Code::Cancelled,
            _ => Code::Internal,
        };
        let mut fault = Self::new(code, error.sqlstate(), error.to_string());
        fault.position = error.position();
        if let ServiceError::Busy { retry_after, .. } = error {
            fault.retry_after = Some(retry_after);
        }
        fault
    }
}

impl From<HttpError> for FlightFault {
    fn from(error: HttpError) -> Self {
        Self::new(Code::InvalidArgument, "22023", error.message)
    }
}

impl From<TicketError> for FlightFault {
    fn from(error: TicketError) -> Self {
        Self::malformed(error.to_string())
    }
}

impl From<ArrowMessageError> for FlightFault {
    fn from(error: ArrowMessageError) -> Self {
        match &error {
            ArrowMessageError::Type { .. } => {
                Self::new(Code::InvalidArgument, "42804", error.to_string())
            }
            ArrowMessageError::Compressed => Self::unsupported(error.to_string()),
            ArrowMessageError::TooLarge { .. } => {
                Self::new(Code::ResourceExhausted, "54000", error.to_string())
            }
            _ => Self::malformed(error.to_string()),
        }
    }
}

/// `google.rpc.Status`
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<RpcDetail>,
}

/// `google.protobuf.Any`
#[derive(Clone, PartialEq, prost::Message)]
struct RpcDetail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

impl RpcDetail {
    fn new(kind: &str, message: &impl Message) -> Self {
        Self {
            type_url: format!("type.googleapis.com/{kind}"),
            value: message.encode_to_vec(),
        }
    }
}

/// `google.rpc.ErrorInfo`
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

/// `google.rpc.RetryInfo`
#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<RpcDuration>,
}

/// `google.protobuf.Duration`
#[derive(Clone, PartialEq, prost::Message)]
struct RpcDuration {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_the_sqlstate_and_the_position() {
        let fault = FlightFault::from(ServiceError::Invalid {
            message: "there is no column 'tmp'".to_owned(),
            position: Some(8),
            sqlstate: "42703",
        });
        let status = fault.to_status();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "there is no column 'tmp'");
        assert_eq!(status.metadata().get("marigram-sqlstate").unwrap(), "42703");
        let details = RpcStatus::decode(status.details()).unwrap();
        assert_eq!(
            (details.code, &*details.message),
            (3, "there is no column 'tmp'")
        );
        let info = ErrorInfo::decode(&*details.details[0].value).unwrap();
        assert_eq!(
            (
                &*info.reason,
                &*info.metadata["sqlstate"],
                &*info.metadata["position"]
            ),
            ("SQLSTATE_42703", "42703", "8")
        );
    }

    #[test]
    fn long_messages_are_cut() {
        let status = FlightFault::malformed("é".repeat(100_000)).to_status();
        assert_eq!(status.message().len(), MESSAGE_BYTES_MAX);
        let status = FlightFault::malformed(format!("x{}", "é".repeat(100_000))).to_status();
        assert_eq!(status.message().len(), MESSAGE_BYTES_MAX - 1);
        let http = status.into_http::<()>();
        let bytes = http
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 32);
        assert!(bytes.sum::<usize>() < 8 << 10, "{:?}", http.headers());
    }
}
