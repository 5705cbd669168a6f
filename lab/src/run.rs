//! TODO.

mod clock;
