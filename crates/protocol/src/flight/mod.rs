//! Arrow Flight: the tickets and handles of statements, and Arrow messages from clients.
//!
//! A handle holds everything that a statement needs: its text, its database and the values of its
//! parameters. So the server keeps nothing between two calls, and a client cannot make it grow.

mod arrow_message_error;
mod arrow_messages;
mod arrow_schema;
mod handle;
mod ticket;

pub use arrow_message_error::ArrowMessageError;
pub use arrow_messages::{ArrowLimits, ArrowMessage, ArrowMessages};
pub use handle::{BoundMessage, FlightHandle, StatementLanguage};
pub use ticket::{QueryTicket, TicketError};
