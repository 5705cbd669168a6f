//! Tests of the servers over a small in-memory database that knows a few statements.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

#[path = "server/browser.rs"]
mod browser;
#[path = "server/certificates.rs"]
mod certificates;
#[path = "server/fake.rs"]
mod fake;
#[path = "server/flight.rs"]
mod flight;
#[path = "server/http.rs"]
mod http;
#[path = "server/influx.rs"]
mod influx;
#[path = "server/malformed.rs"]
mod malformed;
#[path = "server/opentsdb.rs"]
mod opentsdb;
#[path = "server/postgres.rs"]
mod postgres;
#[path = "server/stalled.rs"]
mod stalled;
#[path = "server/tls.rs"]
mod tls;
