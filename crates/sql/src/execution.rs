//! The environment in which plans run: the threads of statements ([`thread_pool`]), their memory
//! ([`memory`]), and the states of DataFusion's sessions ([`context`], [`execution_session`]).

pub mod context;
pub mod execution_session;
pub mod memory;
pub mod thread_pool;
