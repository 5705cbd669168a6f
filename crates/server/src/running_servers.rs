//! Starts and stops the listeners.
//!
//! Stopping has two steps: first, no new connections and requests are accepted; after the grace
//! period, those that still run are ended.

use crate::admission::AdmissionControl;
use crate::audit::{AuditLog, AuditWriter, audited};
use crate::config::ServerConfig;
use crate::logins::FailedLogins;
use crate::services::ServedDatabase;
use crate::slow_log::TimedQuery;
use crate::telemetry::Telemetry;
use crate::tls::ServerTls;
use crate::{flight, http, postgres};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long requests may take to end after they were told to stop.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// Why the servers did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The server cannot listen on an address.
    #[error("cannot listen for {protocol} on {address}: {source}; {advice}")]
    Bind {
        /// `HTTP`, `PostgreSQL` or `Arrow Flight`.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
        /// What to do.
        advice: String,
    },
    /// A setting is invalid.
    #[error("{setting}: {reason}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What is wrong, and what to write.
        reason: String,
    },
}

/// Running servers.
pub struct RunningServers {
    http: Option<SocketAddr>,
    postgres: Option<SocketAddr>,
    flight: Option<SocketAddr>,
    tls: Option<Arc<ServerTls>>,
    audit: Option<AuditWriter>,
    stop: CancellationToken,
    kill: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl RunningServers {
    /// Where HTTP listens.
    #[must_use]
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Where the PostgreSQL protocol listens.
    #[must_use]
    pub fn postgres_addr(&self) -> Option<SocketAddr> {
        self.postgres
    }

    /// Where Arrow Flight SQL listens.
    #[must_use]
    pub fn flight_addr(&self) -> Option<SocketAddr> {
        self.flight
    }

    /// Whether the listeners encrypt connections.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads the files of the certificate again, for connections from now on. What works stays in use
    /// if they cannot be read, and the log says so.
    pub async fn reload_tls(&self) {
        if let Some(tls) = self.tls.clone() {
            let read = tokio::task::spawn_blocking(move || tls.reload_and_tell());
            if let Err(error) = read.await {
                tracing::warn!(%error, "the TLS certificate was not read again");
            }
        }
    }

    /// Stops listening, lets running requests finish for `grace`, then stops them.
    pub async fn shutdown(mut self, grace: Duration) {
        self.stop.cancel();
        let tasks = std::mem::take(&mut self.tasks);
        let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let mut all = futures::future::join_all(tasks);
        if tokio::time::timeout(grace, &mut all).await.is_ok() {
            return close(self.audit.take()).await;
        }
        tracing::warn!(
            ?grace,
            "requests still run after the grace period and are stopped"
        );
        self.kill.cancel();
        if tokio::time::timeout(KILL_GRACE, all).await.is_err() {
            // Clients that do not read their answers.
            tracing::warn!("some requests did not stop; their connections are closed");
            for abort in aborts {
                abort.abort();
            }
        }
        close(self.audit.take()).await;
    }
}

/// Writes what waits for the audit log.
async fn close(audit: Option<AuditWriter>) {
    if let Some(audit) = audit {
        let closed = tokio::task::spawn_blocking(move || audit.close());
        if tokio::time::timeout(KILL_GRACE, closed).await.is_err() {
            tracing::warn!("the disk does not take the last lines of the audit log");
        }
    }
}

impl Drop for RunningServers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Opens the listeners of `config` and serves `services` on them until [`RunningServers::shutdown`].
/// Needs a tokio runtime with I/O and time.
///
/// # Errors
/// If the server cannot listen on an address, or a setting is invalid; no listener is open then.
pub async fn start(
    config: ServerConfig,
    mut services: ServedDatabase,
) -> Result<RunningServers, ServerError> {
    let rules = http::BrowserRules::new(&config)
        .map_err(|(setting, reason)| ServerError::Setting { setting, reason })?;
    if services.access.is_open() {
        let listeners = [
            ("http", config.http),
            ("postgres", config.postgres),
            ("flight", config.flight),
        ];
        for (setting, address) in listeners {
            if let Some(address) = address.filter(|address| !http::is_loopback(address.ip())) {
                let reason = format!(
                    "{address} can be reached from other machines, and the database has no administrator \
                     who must log in: create one with marigram user add NAME --admin, or listen on \
                     127.0.0.1:{}",
                    address.port()
                );
                return Err(ServerError::Setting { setting, reason });
            }
        }
    }
    let tls = load_tls(&config)?;
    let (audit, audit_writer) = open_audit(&config)?;
    let http_listener = match config.http {
        Some(address) => Some(bind("HTTP", address, "--http").await?),
        None => None,
    };
    let postgres_listener = match config.postgres {
        Some(address) => Some(bind("PostgreSQL", address, "--postgres").await?),
        None => None,
    };
    let flight_listener = match config.flight {
        Some(address) => Some(bind("Arrow Flight", address, "--flight").await?),
        None => None,
    };
    if let Some(over) = config.slow_statement() {
        services.query = Arc::new(TimedQuery::new(services.query, over));
    }
    let config = Arc::new(config);
    let gate = AdmissionControl::new(
        config.requests_max,
        config.buffered_bytes_max,
        services.status.clone(),
    );
    let telemetry = Arc::new(Telemetry::default());
    let failed_logins = Arc::<FailedLogins>::default();
    let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
    let mut running = RunningServers {
        http: None,
        postgres: None,
        flight: None,
        tls: tls.clone(),
        audit: audit_writer,
        stop: stop.clone(),
        kill: kill.clone(),
        tasks: Vec::new(),
    };
    if let Some((listener, address)) = http_listener {
        running.http = Some(address);
        running.tasks.push(tokio::spawn(http::serve(
            (listener, tls.clone()),
            rules,
            audited(services.clone(), &audit, "http"),
            config.clone(),
            (gate.clone(), failed_logins.clone(), audit.clone()),
            telemetry.clone(),
            (stop.clone(), kill.clone()),
        )));
    }
    if let Some((listener, address)) = flight_listener {
        running.flight = Some(address);
        running.tasks.push(tokio::spawn(flight::serve(
            (listener, tls.clone()),
            audited(services.clone(), &audit, "flight"),
            config.clone(),
            (gate.clone(), failed_logins.clone(), audit.clone()),
            telemetry.clone(),
            (stop.clone(), kill.clone()),
        )));
    }
    if let Some((listener, address)) = postgres_listener {
        running.postgres = Some(address);
        running.tasks.push(tokio::spawn(postgres::serve(
            (listener, tls.clone()),
            audited(services, &audit, "postgres"),
            config,
            (gate, failed_logins, audit),
            telemetry,
            (stop.clone(), kill),
        )));
    }
    if let Some(tls) = tls {
        running.tasks.push(tokio::spawn(tls.follow_files(stop)));
    }
    Ok(running)
}

fn load_tls(config: &ServerConfig) -> Result<Option<Arc<ServerTls>>, ServerError> {
    let Some(settings) = &config.tls else {
        return Ok(None);
    };
    let loaded = ServerTls::load(settings.clone()).map_err(|error| ServerError::Setting {
        setting: error.setting,
        reason: error.to_string(),
    })?;
    Ok(Some(Arc::new(loaded)))
}

fn open_audit(config: &ServerConfig) -> Result<(AuditLog, Option<AuditWriter>), ServerError> {
    let Some(settings) = &config.audit else {
        return Ok((AuditLog::default(), None));
    };
    let opened = AuditLog::open(settings).map_err(|error| {
        let path = settings.path.display();
        let reason = format!("cannot write {path}: {error}");
        ServerError::Setting {
            setting: "audit_log",
            reason,
        }
    });
    opened.map(|(log, writer)| (log, Some(writer)))
}

async fn bind(
    protocol: &'static str,
    address: SocketAddr,
    option: &str,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    let bound = match TcpListener::bind(address).await {
        Ok(listener) => listener.local_addr().map(|local| (listener, local)),
        Err(error) => Err(error),
    };
    bound.map_err(|source| {
        let advice = match source.kind() {
            std::io::ErrorKind::AddrInUse => format!(
                "another program listens on this address: stop it, or give another address with {option}"
            ),
            std::io::ErrorKind::PermissionDenied => {
                format!("ports below 1024 need special privileges: give another address with {option}")
            }
            std::io::ErrorKind::AddrNotAvailable => {
                format!("this machine has no such address: give one of its own with {option}")
            }
            _ => format!("give another address with {option}"),
        };
        ServerError::Bind {
            protocol,
            address,
            source,
            advice,
        }
    })
}
