//! Peers: installed from package registries into a folder of their own, and started on loopback.

pub mod process;
