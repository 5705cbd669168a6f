//! Executes the statements that are not queries: DDL, `SHOW`, `DELETE`, `UPDATE`, `COPY`, `SET`, `SUMMARIZE`,
//! and those about storage.

pub(crate) mod compactions;
pub(crate) mod copy;
pub(crate) mod ddl_execution;
pub(crate) mod delete;
pub(crate) mod hypertable;
pub(crate) mod permissions;
pub(crate) mod privilege_functions;
pub(crate) mod reference;
pub(crate) mod retype;
pub(crate) mod roles;
pub(crate) mod session;
pub(crate) mod session_functions;
pub(crate) mod show;
mod show_reference;
pub(crate) mod storage;
pub(crate) mod summarize;
pub mod tsfile;
pub(crate) mod update;
pub(crate) mod users;
