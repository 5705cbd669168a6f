//! Starts and stops the listeners.
//!
//! Stopping has two steps: first, no new connections and requests are accepted; after the grace
//! period, those that still run are ended.

use crate::admission::AdmissionControl;
use crate::config::ServerConfig;
use crate::logins::FailedLogins;
use crate::services::ServedDatabase;
use crate::slow_log::TimedQuery;
use crate::telemetry::Telemetry;
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

    /// Stops listening, lets running requests finish for `grace`, then stops them.
    pub async fn shutdown(mut self, grace: Duration) {
        self.stop.cancel();
        let tasks = std::mem::take(&mut self.tasks);
        let aborts: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let mut all = futures::future::join_all(tasks);
        if tokio::time::timeout(grace, &mut all).await.is_ok() {
            return;
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
        stop: stop.clone(),
        kill: kill.clone(),
        tasks: Vec::new(),
    };
    if let Some((listener, address)) = http_listener {
        running.http = Some(address);
        running.tasks.push(tokio::spawn(http::serve(
            listener,
            rules,
            services.clone(),
            config.clone(),
            (gate.clone(), failed_logins.clone()),
            telemetry.clone(),
            (stop.clone(), kill.clone()),
        )));
    }
    if let Some((listener, address)) = flight_listener {
        running.flight = Some(address);
        running.tasks.push(tokio::spawn(flight::serve(
            listener,
            services.clone(),
            config.clone(),
            (gate.clone(), failed_logins.clone()),
            telemetry.clone(),
            (stop.clone(), kill.clone()),
        )));
    }
    if let Some((listener, address)) = postgres_listener {
        running.postgres = Some(address);
        running.tasks.push(tokio::spawn(postgres::serve(
            listener,
            services,
            config,
            (gate, failed_logins),
            telemetry,
            (stop, kill),
        )));
    }
    Ok(running)
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
