//! Settings of the servers. The command line reads them from files, the environment and options.

use crate::audit::AuditSettings;
use crate::tls::TlsSettings;
use crate::web_token::WebTokenKey;
use marigram_service::DEFAULT_DATABASE;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where HTTP listens; not at all if absent. Port 0 takes a free port.
    pub http: Option<SocketAddr>,
    /// Where the PostgreSQL protocol listens; not at all if absent. Port 0 takes a free port.
    pub postgres: Option<SocketAddr>,
    /// Where Arrow Flight SQL listens; not at all if absent. Port 0 takes a free port.
    pub flight: Option<SocketAddr>,
    /// Where OpenTSDB's protocols listen (HTTP and telnet); not at all if absent. Port 0 takes a free
    /// port.
    pub opentsdb: Option<SocketAddr>,
    /// The database of OpenTSDB's clients, whose protocols know none.
    pub opentsdb_database: String,
    /// Where Apache IoTDB's Thrift protocol listens; not at all if absent. Port 0 takes a free port.
    pub iotdb: Option<SocketAddr>,
    /// Where TDengine's REST API and WebSocket listen; not at all if absent. Port 0 takes a free port.
    pub tdengine: Option<SocketAddr>,
    /// The certificate with which connections are encrypted; none are if absent.
    pub tls: Option<TlsSettings>,
    /// Where logins, refusals and changes are noted; nowhere if absent.
    pub audit: Option<AuditSettings>,
    /// The secret of JSON Web Tokens over HTTP; they are refused if absent.
    pub web_token_key: Option<WebTokenKey>,
    /// The folder in which HTTP may ask for backups; none if absent.
    pub backup_dir: Option<PathBuf>,
    /// Hosts that HTTP accepts in `Host`, besides the server's own addresses: names, `*.name` for
    /// all below it, `*` for all.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use HTTP: `scheme://host[:port]`, where a host may begin with
    /// `*.` and a port may be `*`; `*` for all.
    pub allowed_origins: Vec<String>,
    /// Whether writes of line protocol create their database where it does not exist.
    pub write_creates_databases: bool,
    /// Largest request body as sent, and largest message of a client of PostgreSQL or Flight, bytes.
    pub body_limit: usize,
    /// Largest request body once decompressed, bytes.
    pub unpacked_limit: usize,
    /// Request bodies in memory at once, over all connections and unpacked, bytes.
    pub buffered_bytes_max: usize,
    /// Writes and queries running at once, over all connections and protocols.
    pub requests_max: usize,
    /// Open connections of each protocol. Beyond the limit, PostgreSQL clients get an error, and
    /// HTTP clients wait.
    pub connections_max: usize,
    /// Time after which an HTTP connection without a request is closed, ms. A request counts from
    /// when its head has arrived.
    pub http_idle_timeout_ms: u64,
    /// Time after which a connection whose client takes nothing of its answer is closed and its
    /// query stopped, ms; 0 for never. Every byte sent restarts it.
    pub write_timeout_ms: u64,
    /// Time after which a statement is stopped, ms; 0 for never. A session may set its own.
    pub statement_timeout_ms: u64,
    /// Duration after which the log reports a statement, with its text, ms; 0 for never.
    pub slow_statement_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let local = |port| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        Self {
            http: local(8086),
            postgres: local(5432),
            flight: None,
            opentsdb: None,
            opentsdb_database: DEFAULT_DATABASE.to_owned(),
            iotdb: None,
            tdengine: None,
            tls: None,
            audit: None,
            web_token_key: None,
            backup_dir: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            write_creates_databases: true,
            body_limit: 64 << 20,
            unpacked_limit: 256 << 20,
            buffered_bytes_max: 512 << 20,
            requests_max: 256,
            connections_max: 1000,
            http_idle_timeout_ms: 120_000,
            write_timeout_ms: 60_000,
            statement_timeout_ms: 0,
            slow_statement_ms: 10_000,
        }
    }
}

impl ServerConfig {
    /// The statement timeout of a new session.
    #[must_use]
    pub fn statement_timeout(&self) -> Option<Duration> {
        (self.statement_timeout_ms > 0).then(|| Duration::from_millis(self.statement_timeout_ms))
    }

    /// The time after which a statement is slow.
    pub(crate) fn slow_statement(&self) -> Option<Duration> {
        (self.slow_statement_ms > 0).then(|| Duration::from_millis(self.slow_statement_ms))
    }

    /// How long a client may take nothing of its answer.
    pub(crate) fn write_timeout(&self) -> Option<Duration> {
        (self.write_timeout_ms > 0).then(|| Duration::from_millis(self.write_timeout_ms))
    }
}
