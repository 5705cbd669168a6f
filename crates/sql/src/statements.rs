//! Executes the statements that are not queries: DDL, `SHOW`, `DELETE`, `COPY`, `SET`, `SUMMARIZE`,
//! and those about storage.

pub mod compactions;
pub mod copy;
pub mod ddl_execution;
pub mod delete;
pub mod permissions;
pub mod privilege_functions;
pub mod retype;
pub mod session;
pub mod session_functions;
pub mod show;
pub mod storage;
pub mod summarize;
pub mod tsfile;
pub mod users;
