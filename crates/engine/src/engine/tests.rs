//! Behaviour of the whole engine on a simulated disk.

mod backup;
mod faults;
mod growth;
mod limits;
mod model;
mod rollups;
mod settings;
mod support;
mod threads;
mod unproved;
