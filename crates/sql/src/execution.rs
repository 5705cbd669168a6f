//! The environment in which plans run: the threads of statements ([`thread_pool`]), their memory
//! ([`memory`], [`unread_memory`]), and the states of DataFusion's sessions ([`context`], [`execution_session`]).

pub(crate) mod context;
pub(crate) mod execution_session;
pub(crate) mod memory;
pub(crate) mod thread_pool;
pub(crate) mod unread_memory;
