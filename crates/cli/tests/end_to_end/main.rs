//! End to end, with the real binary: what a person with sensors does in the first hour, and what
//! happens to that person on a bad day.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests are outside the database and use the machine as a client would"
)]

mod access;
mod audit;
mod backup;
mod bad_input;
#[path = "../../../server/tests/server/certificates.rs"]
mod certificates;
mod clients;
mod crash;
mod flight;
mod flux;
mod http;
mod influx;
mod iotdb;
mod kill_rounds;
mod lab;
mod opentsdb;
mod other_databases;
mod postgres;
mod psql;
mod reference_kills;
mod refused_bodies;
mod scram;
mod server;
mod sign_in;
mod stopping;
mod tdengine;
mod tls;
