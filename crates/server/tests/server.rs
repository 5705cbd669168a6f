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
#[path = "server/iotdb.rs"]
mod iotdb;
#[path = "server/iotdb_client.rs"]
mod iotdb_client;
#[path = "server/malformed.rs"]
mod malformed;
#[path = "server/opentsdb.rs"]
mod opentsdb;
#[path = "server/opentsdb_annotations.rs"]
mod opentsdb_annotations;
#[path = "server/postgres.rs"]
mod postgres;
#[path = "server/stalled.rs"]
mod stalled;
#[path = "server/taos_fake.rs"]
mod taos_fake;
#[path = "server/tdengine.rs"]
mod tdengine;
#[path = "server/tdengine_ws.rs"]
mod tdengine_ws;
#[path = "server/tls.rs"]
mod tls;
#[path = "server/websocket.rs"]
mod websocket;
