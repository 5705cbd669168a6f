//! Tables of series as DataFusion sees them: their rows to read ([`table`], [`series`]) and to
//! write ([`sink`], [`replaced`]), and their settings as text ([`written_settings`]).

pub mod batches;
pub mod notices;
pub mod replaced;
pub mod series;
pub mod sink;
pub mod table;
pub mod written_settings;
