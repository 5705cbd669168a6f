//! Messages of the PostgreSQL protocol 3.0 as bytes, according to the section "Message Formats" of
//! PostgreSQL's manual.
//!
//! Invariant: every length and count from a client is checked against the bytes that arrived. A
//! message that breaks the rules is a [`MalformedMessage`], which ends the connection, because the
//! start of the next message is no longer certain.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Largest startup message; the same as PostgreSQL's.
const STARTUP_BYTES_MAX: usize = 10_000;

/// A violation of the protocol by a client; the text says which.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct MalformedMessage(pub String);

type Result<T> = std::result::Result<T, MalformedMessage>;

/// The first message of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StartupMessage {
    /// Asks for TLS; the answer is one byte.
    Tls,
    /// Asks for GSS encryption; the answer is one byte.
    Gss,
    /// Asks that the query of another connection be stopped.
    Cancel {
        /// The connection's number.
        process: i32,
        /// Its secret.
        secret: i32,
    },
    /// Begins a session.
    Startup {
        /// Minor version of the client's protocol; the major version is 3.
        minor: u16,
        /// `user`, `database` and settings, in the order sent.
        parameters: Vec<(String, String)>,
    },
}

/// A message of a client in a session.
#[derive(Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names are those of the protocol's own description"
)]
pub(super) enum FrontendMessage {
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind(BindMessage),
    Describe {
        kind: u8,
        name: String,
    },
    Execute {
        portal: String,
        rows_max: u32,
    },
    Close {
        kind: u8,
        name: String,
    },
    Sync,
    Flush,
    Terminate,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    /// A password or another answer to an authentication request.
    Password(Bytes),
}

/// The first message of a SASL login.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SaslInitialResponse {
    /// The mechanism that the client chose.
    pub mechanism: String,
    /// What the mechanism says first.
    pub data: Bytes,
}

impl SaslInitialResponse {
    /// Reads the body of a `Password` message; `None` if it has no data.
    pub(super) fn read(body: Bytes) -> Result<Option<Self>> {
        let mut body = MessageBody(body);
        let mechanism = body.text()?;
        let data = body.value()?;
        Ok(data.map(|data| Self { mechanism, data }))
    }
}

/// Values for a prepared statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BindMessage {
    /// Name of the portal to create.
    pub portal: String,
    /// Name of the statement.
    pub statement: String,
    /// Formats of the values: none (all text), one for all, or one for each; 1 is binary.
    pub formats: Vec<i16>,
    /// The values; `None` is NULL.
    pub values: Vec<Option<Bytes>>,
    /// Formats of the answer's columns, in the same way as `formats`.
    pub results: Vec<i16>,
}

/// Whether a connection begins in another protocol. The first byte of an opening message is the top
/// byte of a length below 16 MiB, so it is always 0; HTTP begins with a letter, TLS with 22.
pub(super) fn is_foreign(buffer: &[u8]) -> bool {
    buffer.first().is_some_and(|first| *first != 0)
}

/// Takes the opening message off `buffer`; `None` if it is incomplete.
pub(super) fn take_opening(buffer: &mut BytesMut) -> Result<Option<StartupMessage>> {
    let Some(mut length) = buffer.get(..4) else {
        return Ok(None);
    };
    let length = length.get_u32() as usize;
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(MalformedMessage(format!(
            "an opening message cannot have {length} bytes"
        )));
    }
    if buffer.len() < length {
        return Ok(None);
    }
    let mut body = MessageBody(buffer.split_to(length).freeze());
    body.0.advance(4);
    let code = body.u32()?;
    match code {
        80_877_103 => Ok(Some(StartupMessage::Tls)),
        80_877_104 => Ok(Some(StartupMessage::Gss)),
        80_877_102 => Ok(Some(StartupMessage::Cancel {
            process: body.i32()?,
            secret: body.i32()?,
        })),
        code if code >> 16 == 3 => {
            let mut parameters = Vec::new();
            loop {
                let name = body.text()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, body.text()?));
            }
            Ok(Some(StartupMessage::Startup {
                minor: code as u16,
                parameters,
            }))
        }
        other => Err(MalformedMessage(format!(
            "protocol {}.{} is not supported; use 3.0",
            other >> 16,
            other & 0xffff
        ))),
    }
}

/// Takes the next message off `buffer`; `None` if it is incomplete. Refuses a message of more than
/// `bytes_max` before reading it.
pub(super) fn take(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<FrontendMessage>> {
    let (Some(kind), Some(mut length)) = (buffer.first().copied(), buffer.get(1..5)) else {
        return Ok(None);
    };
    let length = length.get_u32() as usize;
    if length < 4 || length > bytes_max.max(STARTUP_BYTES_MAX) {
        return Err(MalformedMessage(format!(
            "a message of type '{}' cannot have {length} bytes; the limit is {bytes_max}",
            kind.escape_ascii()
        )));
    }
    if buffer.len() <= length {
        return Ok(None);
    }
    let mut body = MessageBody(buffer.split_to(length + 1).freeze());
    body.0.advance(5);
    Ok(Some(match kind {
        b'Q' => FrontendMessage::Query(body.text()?),
        b'P' => {
            let (name, sql) = (body.text()?, body.text()?);
            FrontendMessage::Parse {
                name,
                sql,
                types: body.counted(4, MessageBody::u32)?,
            }
        }
        b'B' => {
            let (portal, statement) = (body.text()?, body.text()?);
            let formats = body.counted(2, MessageBody::i16)?;
            let values = body.counted(4, MessageBody::value)?;
            let results = body.counted(2, MessageBody::i16)?;
            FrontendMessage::Bind(BindMessage {
                portal,
                statement,
                formats,
                values,
                results,
            })
        }
        b'D' => FrontendMessage::Describe {
            kind: body.u8()?,
            name: body.text()?,
        },
        b'E' => FrontendMessage::Execute {
            portal: body.text()?,
            rows_max: body.u32()?,
        },
        b'C' => FrontendMessage::Close {
            kind: body.u8()?,
            name: body.text()?,
        },
        b'S' => FrontendMessage::Sync,
        b'H' => FrontendMessage::Flush,
        b'X' => FrontendMessage::Terminate,
        b'd' => FrontendMessage::CopyData(body.0),
        b'c' => FrontendMessage::CopyDone,
        b'f' => FrontendMessage::CopyFail(body.text()?),
        b'p' => FrontendMessage::Password(body.0),
        other => {
            let other = other.escape_ascii();
            return Err(MalformedMessage(format!(
                "there is no message of type '{other}'"
            )));
        }
    }))
}

/// The unread bytes of one message.
struct MessageBody(Bytes);

impl MessageBody {
    fn need(&self, bytes: usize) -> Result<()> {
        if self.0.len() < bytes {
            return Err(MalformedMessage(
                "a message is shorter than its content".to_owned(),
            ));
        }
        Ok(())
    }

    fn u8(&mut self) -> Result<u8> {
        self.need(1)?;
        Ok(self.0.get_u8())
    }

    fn i16(&mut self) -> Result<i16> {
        self.need(2)?;
        Ok(self.0.get_i16())
    }

    fn i32(&mut self) -> Result<i32> {
        self.need(4)?;
        Ok(self.0.get_i32())
    }

    fn u32(&mut self) -> Result<u32> {
        self.need(4)?;
        Ok(self.0.get_u32())
    }

    fn text(&mut self) -> Result<String> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end =
            end.ok_or_else(|| MalformedMessage("a text in a message has no end".to_owned()))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(text.to_vec())
            .map_err(|_| MalformedMessage("a text in a message is not UTF-8".to_owned()))
    }

    fn value(&mut self) -> Result<Option<Bytes>> {
        let length = self.i32()?;
        let Ok(length) = usize::try_from(length) else {
            return Ok(None);
        };
        self.need(length)?;
        Ok(Some(self.0.split_to(length)))
    }

    /// Reads a 16-bit count, and that many items of at least `bytes` bytes each.
    fn counted<T>(&mut self, bytes: usize, one: fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.i16()? as u16 as usize;
        self.need(count * bytes)?;
        (0..count).map(|_| one(self)).collect()
    }
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowDescriptionColumn {
    /// Name.
    pub name: String,
    /// OID of its type.
    pub oid: u32,
    /// Bytes of a value of the type; -1 if they vary.
    pub size: i16,
    /// Whether values are sent in binary.
    pub binary: bool,
}

/// Messages to a client, collected until they are sent.
#[derive(Debug, Default)]
pub(super) struct BackendMessages {
    /// The bytes.
    pub bytes: BytesMut,
}

impl BackendMessages {
    /// Appends a message of type `kind` with the body that `write` writes.
    pub(super) fn message(&mut self, kind: u8, write: impl FnOnce(&mut BytesMut)) {
        self.bytes.put_u8(kind);
        let at = self.bytes.len();
        self.bytes.put_u32(0);
        write(&mut self.bytes);
        let length = (self.bytes.len() - at) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends a message without a body.
    pub(super) fn bare(&mut self, kind: u8) {
        self.message(kind, |_| {});
    }

    /// A setting of the session.
    pub(super) fn parameter_status(&mut self, name: &str, value: &str) {
        self.message(b'S', |body| {
            put_text(body, name);
            put_text(body, value);
        });
    }

    /// Ready for the next statement; `status` is `I`, `T` or `E`.
    pub(super) fn ready(&mut self, status: u8) {
        self.message(b'Z', |body| body.put_u8(status));
    }

    /// A statement is done.
    pub(super) fn complete(&mut self, tag: &str) {
        self.message(b'C', |body| put_text(body, tag));
    }

    /// The columns of the rows that follow.
    pub(super) fn row_description(&mut self, columns: &[RowDescriptionColumn]) {
        self.message(b'T', |body| {
            body.put_u16(columns.len() as u16);
            for column in columns {
                put_text(body, &column.name);
                body.put_u32(0);
                body.put_u16(0);
                body.put_u32(column.oid);
                body.put_i16(column.size);
                body.put_i32(-1);
                body.put_i16(i16::from(column.binary));
            }
        });
    }

    /// OIDs of a statement's parameters.
    pub(super) fn parameter_description(&mut self, oids: &[u32]) {
        self.message(b't', |body| {
            body.put_u16(oids.len() as u16);
            for oid in oids {
                body.put_u32(*oid);
            }
        });
    }

    /// The start of a COPY: `G` for in, `H` for out.
    pub(super) fn copy_response(&mut self, kind: u8, columns: usize, binary: bool) {
        self.message(kind, |body| {
            body.put_u8(u8::from(binary));
            body.put_u16(columns as u16);
            for _ in 0..columns {
                body.put_u16(u16::from(binary));
            }
        });
    }

    /// A notice about an answer.
    pub(super) fn notice(&mut self, text: &str) {
        self.fields(
            b'N',
            &[
                (b'S', "NOTICE"),
                (b'V', "NOTICE"),
                (b'C', "00000"),
                (b'M', text),
            ],
        );
    }

    /// An error, as fields with their letters.
    pub(super) fn error(&mut self, fields: &[(u8, &str)]) {
        self.fields(b'E', fields);
    }

    fn fields(&mut self, kind: u8, fields: &[(u8, &str)]) {
        self.message(kind, |body| {
            for (letter, text) in fields {
                body.put_u8(*letter);
                put_text(body, text);
            }
            body.put_u8(0);
        });
    }
}

/// Appends a text and its terminating zero; omits zero bytes inside, which would end it early.
pub(super) fn put_text(body: &mut BytesMut, text: &str) {
    body.extend(text.bytes().filter(|byte| *byte != 0));
    body.put_u8(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> BytesMut {
        let mut backend = BackendMessages::default();
        backend.message(kind, |out| out.extend_from_slice(body));
        backend.bytes
    }

    #[test]
    fn a_message_is_taken_when_it_is_whole() {
        let whole = message(b'Q', b"select 1\0");
        for cut in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..cut]);
            assert_eq!(take(&mut part, 1000).unwrap(), None);
        }
        let mut two = whole.clone();
        two.extend_from_slice(&whole);
        assert_eq!(
            take(&mut two, 1000).unwrap(),
            Some(FrontendMessage::Query("select 1".to_owned()))
        );
        assert_eq!(two, whole);
    }

    #[test]
    fn bind_holds_values_and_formats() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02hi\xff\xff\xff\xff\0\0";
        let taken = take(&mut message(b'B', body), 1000).unwrap().unwrap();
        let bind = BindMessage {
            portal: "p".to_owned(),
            statement: "s".to_owned(),
            formats: vec![1],
            values: vec![Some(Bytes::from_static(b"hi")), None],
            results: vec![],
        };
        assert_eq!(taken, FrontendMessage::Bind(bind));
    }

    #[test]
    fn broken_messages_are_errors_and_never_panics() {
        let good = [
            message(b'P', b"s\0select 1\0\0\x02\0\0\0\x14\0\0\0\x19"),
            message(
                b'B',
                b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02hi\xff\xff\xff\xff\0\x01\0\x01",
            ),
            message(b'E', b"p\0\0\0\0\0"),
            message(b'D', b"Sname\0"),
        ];
        for whole in good {
            for at in 5..whole.len() {
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut changed = whole.clone();
                    changed[at] = byte;
                    let _ = take(&mut changed, 1000);
                    // Cut the body and adjust the length.
                    let _ = take(&mut message(whole[0], &whole[5..at]), 1000);
                }
            }
        }
        assert!(take(&mut message(b'B', b"p\0s\0\0\0\xff\xff"), 1000).is_err());
        assert!(take(&mut message(b'?', b""), 1000).is_err());
        let mut huge = BytesMut::from(&b"Q\x7f\xff\xff\xff"[..]);
        assert!(take(&mut huge, 1 << 20).is_err());
    }

    #[test]
    fn openings() {
        let mut ssl = BytesMut::from(&[0, 0, 0, 8, 4, 210, 22, 47][..]);
        assert_eq!(take_opening(&mut ssl).unwrap(), Some(StartupMessage::Tls));
        let mut startup = BytesMut::from(&b"\0\0\0\x13\0\x03\0\0user\0me\0\0\0"[..]);
        startup[3] = 17;
        let opening = take_opening(&mut startup).unwrap();
        let parameters = vec![("user".to_owned(), "me".to_owned())];
        assert_eq!(
            opening,
            Some(StartupMessage::Startup {
                minor: 0,
                parameters
            })
        );
        assert!(take_opening(&mut BytesMut::from(&b"GET / HTTP/1.1\r\n"[..])).is_err());
    }
}
