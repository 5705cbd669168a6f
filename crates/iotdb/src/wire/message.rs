//! The head of a message, and the answers that have no structure of their own.

use super::reader::WireReader;
use super::structure::wire_struct;
use super::types::{WireFault, WireProtocol};
use super::values::WireWrite;
use super::writer::WireWriter;

/// The first two bytes of a message in the binary protocol.
const BINARY_VERSION: [u8; 2] = [0x80, 0x01];

/// The first byte of a message in the compact protocol, and the version in the second one.
const COMPACT_ID: u8 = 0x82;
const COMPACT_VERSION: u8 = 1;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A request that is answered.
    Call,
    /// An answer.
    Reply,
    /// An answer that names a fault of the protocol.
    Exception,
    /// A request that is not answered.
    OneWay,
}

impl MessageKind {
    fn from_number(number: u8) -> Result<Self, WireFault> {
        Ok(match number {
            1 => Self::Call,
            2 => Self::Reply,
            3 => Self::Exception,
            4 => Self::OneWay,
            _ => return Err(WireFault::UnknownProtocol),
        })
    }

    fn number(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Reply => 2,
            Self::Exception => 3,
            Self::OneWay => 4,
        }
    }
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHead<'a> {
    /// The protocol of the message.
    pub protocol: WireProtocol,
    /// What it is.
    pub kind: MessageKind,
    /// The method.
    pub method: &'a str,
    /// The number that the answer repeats.
    pub sequence: i32,
}

/// Reads the head of a message; the reader then stands at its structure.
///
/// # Errors
/// If the bytes are no message.
pub fn message_head(
    frame: &[u8],
    memory_max: usize,
) -> Result<(MessageHead<'_>, WireReader<'_>), WireFault> {
    match frame {
        [0x80, 0x01, 0, number, rest @ ..] => {
            let kind = MessageKind::from_number(*number)?;
            let mut reader = WireReader::new(rest, WireProtocol::Binary, memory_max);
            let method = reader.text()?;
            let sequence = reader.i32()?;
            let head = MessageHead {
                protocol: WireProtocol::Binary,
                kind,
                method,
                sequence,
            };
            Ok((head, reader))
        }
        [COMPACT_ID, version, rest @ ..] if version & 0x1f == COMPACT_VERSION => {
            let kind = MessageKind::from_number(version >> 5)?;
            let mut reader = WireReader::new(rest, WireProtocol::Compact, memory_max);
            // A plain varint: it is not zigzag.
            let sequence = reader.varint()? as u32 as i32;
            let method = reader.text()?;
            let head = MessageHead {
                protocol: WireProtocol::Compact,
                kind,
                method,
                sequence,
            };
            Ok((head, reader))
        }
        _ => Err(WireFault::UnknownProtocol),
    }
}

fn write_head(head: &MessageHead<'_>, kind: MessageKind) -> WireWriter {
    let mut writer = WireWriter::new(head.protocol);
    match head.protocol {
        WireProtocol::Binary => {
            writer.raw(&BINARY_VERSION);
            writer.raw(&[0, kind.number()]);
            writer.binary(head.method.as_bytes());
            writer.i32(head.sequence);
        }
        WireProtocol::Compact => {
            writer.raw(&[COMPACT_ID, kind.number() << 5 | COMPACT_VERSION]);
            writer.varint(u64::from(head.sequence as u32));
            writer.binary(head.method.as_bytes());
        }
    }
    writer
}

/// The answer to a call.
pub fn write_reply<T: WireWrite>(head: &MessageHead<'_>, result: &T) -> Vec<u8> {
    let mut writer = write_head(head, MessageKind::Reply);
    writer.structure(|writer| writer.field(0, result));
    writer.into_bytes()
}

/// A call whose arguments `arguments` writes, as clients send it.
pub fn write_call(head: &MessageHead<'_>, arguments: impl FnOnce(&mut WireWriter)) -> Vec<u8> {
    let mut writer = write_head(head, MessageKind::Call);
    writer.structure(arguments);
    writer.into_bytes()
}

wire_struct! {
    /// Why a call could not be answered at all.
    ApplicationFault<'a> {
        /// The reason, for people.
        1 required message: &'a str,
        /// The kind of the fault: [`ApplicationFault::UNKNOWN_METHOD`] and so on.
        2 required kind: i32,
    }
}

impl ApplicationFault<'_> {
    /// The server does not have the method.
    pub const UNKNOWN_METHOD: i32 = 1;
    /// The arguments could not be read.
    pub const PROTOCOL_ERROR: i32 = 7;
}

/// The answer to a call that could not be read.
pub fn write_application_fault(head: &MessageHead<'_>, kind: i32, message: &str) -> Vec<u8> {
    let mut writer = write_head(head, MessageKind::Exception);
    ApplicationFault { message, kind }.write(&mut writer);
    writer.into_bytes()
}
