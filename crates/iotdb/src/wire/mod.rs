//! Thrift's encodings: messages and structures in the binary and in the compact protocol.
//!
//! A frame is read in place: strings and binaries are borrowed from it. What lists need beside it is
//! counted against a limit, and the depth of structures is bounded, so that no frame costs more than
//! its reader allows.

mod message;
mod reader;
mod structure;
mod types;
mod values;
mod writer;

pub use message::{
    ApplicationFault, MessageHead, MessageKind, message_head, write_application_fault, write_call,
    write_reply,
};
pub use reader::WireReader;
pub(crate) use structure::wire_struct;
pub use types::{WireFault, WireProtocol, WireType};
pub use values::{WireMap, WireRead, WireWrite};
pub use writer::WireWriter;

#[cfg(test)]
mod tests;
