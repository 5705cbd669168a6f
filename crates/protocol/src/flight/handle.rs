//! The handle of a statement, which a client gets and sends back.
//!
//! It is a message of Protocol Buffers. A client could make one up; that gives it nothing, because a
//! handle only says what a client may also say in plain text.

use bytes::Bytes;
use prost::Message;

/// The language of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum StatementLanguage {
    /// SQL.
    Sql = 0,
    /// InfluxQL.
    InfluxQl = 1,
}

/// An Arrow message with values of parameters, as the client sent it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BoundMessage {
    /// The head of the message.
    #[prost(bytes = "bytes", tag = "1")]
    pub header: Bytes,
    /// Its values.
    #[prost(bytes = "bytes", tag = "2")]
    pub body: Bytes,
}

/// Everything that a statement needs to run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FlightHandle {
    /// The database; empty for that of the call.
    #[prost(string, tag = "1")]
    pub database: String,
    /// The text.
    #[prost(string, tag = "2")]
    pub text: String,
    /// Its language.
    #[prost(enumeration = "StatementLanguage", tag = "3")]
    pub language: i32,
    /// The values of its parameters: a schema, dictionaries, and rows.
    #[prost(message, repeated, tag = "4")]
    pub parameters: Vec<BoundMessage>,
    /// A number by which the running statement can be stopped.
    #[prost(bytes = "bytes", tag = "5")]
    pub id: Bytes,
}

impl FlightHandle {
    /// A statement without parameters.
    #[must_use]
    pub fn new(database: &str, text: &str, language: StatementLanguage) -> Self {
        Self {
            database: database.to_owned(),
            text: text.to_owned(),
            language: language.into(),
            ..Self::default()
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn write(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads the bytes of one; `None` if they are of no handle.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_was() {
        let mut handle = FlightHandle::new("plant", "SELECT $1", StatementLanguage::InfluxQl);
        handle.parameters.push(BoundMessage {
            header: Bytes::from_static(b"head"),
            body: Bytes::from_static(b"body"),
        });
        handle.id = Bytes::from_static(b"0123456789abcdef");
        let read = FlightHandle::read(&handle.write()).unwrap();
        assert_eq!(read, handle);
        assert_eq!(read.language(), StatementLanguage::InfluxQl);
        assert!(FlightHandle::read(b"\x0a\xff").is_none());
    }
}
