//! Executing the statements that are no queries: DDL, `SHOW`, `DELETE`, `COPY`, `SET`, `SUMMARIZE`,
//! and what they say about storage.

pub mod compactions;
pub mod copy;
pub mod ddl_execution;
pub mod delete;
pub mod retype;
pub mod session;
pub mod session_functions;
pub mod show;
pub mod storage;
pub mod summarize;
pub mod tsfile;
