//! Starts and stops the listeners.
//!
//! Stopping has two steps: first, no new connections and requests are accepted; after the grace
//! period, those that still run are ended.

use crate::admission::AdmissionControl;
use crate::audit::{AuditLog, AuditWriter, audited};
use crate::config::ServerConfig;
use crate::http::is_loopback;
use crate::listener::{ListenerContext, ListenerKind, ServerState};
use crate::services::ServedDatabase;
use crate::slow_log::{TimedLanguages, TimedQuery};
use crate::tls::ServerTls;
use marigram_service::run_blocking;
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
    listening: Vec<(ListenerKind, SocketAddr)>,
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
        self.address("http")
    }

    /// Where the PostgreSQL protocol listens.
    #[must_use]
    pub fn postgres_addr(&self) -> Option<SocketAddr> {
        self.address("postgres")
    }

    /// Where Arrow Flight SQL listens.
    #[must_use]
    pub fn flight_addr(&self) -> Option<SocketAddr> {
        self.address("flight")
    }

    /// Where the listener of a setting listens.
    #[must_use]
    pub fn address(&self, setting: &str) -> Option<SocketAddr> {
        let mut listening = self.listening.iter();
        let found = listening.find(|(kind, _)| kind.setting == setting);
        found.map(|(_, address)| *address)
    }

    /// The title and the URL of every listener.
    #[must_use]
    pub fn urls(&self) -> Vec<(&'static str, String)> {
        let url = |(kind, address): &(ListenerKind, SocketAddr)| {
            (kind.title, (kind.url)(*address, self.has_tls()))
        };
        self.listening.iter().map(url).collect()
    }

    /// Whether the listeners encrypt connections.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Reads the files of the certificate again, for connections from now on. What works stays in use
    /// if they cannot be read, and the log says so.
    pub async fn reload_tls(&self) {
        if let Some(tls) = &self.tls {
            tls.reload_in_background().await;
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
        let closed = run_blocking(move || audit.close());
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

/// Opens the listeners of `config` among `kinds`, and serves `services` on them until
/// [`RunningServers::shutdown`].
pub(crate) async fn start(
    kinds: &[ListenerKind],
    config: ServerConfig,
    mut services: ServedDatabase,
) -> Result<RunningServers, ServerError> {
    if services.access.is_open() {
        refuse_exposure(kinds, &config)?;
    }
    let tls = load_tls(&config)?;
    let (audit, audit_writer) = open_audit(&config)?;
    let mut listeners = Vec::new();
    for kind in kinds {
        if let Some(address) = (kind.address)(&config) {
            let (listener, address) = bind(kind, address).await?;
            listeners.push((*kind, listener, address));
        }
    }
    if let Some(over) = config.slow_statement() {
        services.query = Arc::new(TimedQuery::new(services.query, over));
        services.languages = Arc::new(TimedLanguages::new(services.languages, over));
    }
    let config = Arc::new(config);
    let gate = AdmissionControl::new(
        config.requests_max,
        config.buffered_bytes_max,
        services.status.clone(),
    );
    let context = ListenerContext {
        server: ServerState {
            services,
            config,
            gate,
            telemetry: Arc::default(),
            failed_logins: Arc::default(),
            audit,
            kill: CancellationToken::new(),
        },
        tls,
        stop: CancellationToken::new(),
    };
    let mut running = RunningServers {
        listening: Vec::new(),
        tls: context.tls.clone(),
        audit: audit_writer,
        stop: context.stop.clone(),
        kill: context.server.kill.clone(),
        tasks: Vec::new(),
    };
    for (kind, listener, address) in listeners {
        let mut context = context.clone();
        let server = &mut context.server;
        server.services = audited(server.services.clone(), &server.audit, kind.setting);
        running.listening.push((kind, address));
        let served = (kind.serve)(listener, context);
        running.tasks.push(tokio::spawn(served));
    }
    if let Some(tls) = context.tls {
        running
            .tasks
            .push(tokio::spawn(tls.follow_files(context.stop)));
    }
    Ok(running)
}

/// Refuses listeners that other machines can reach while nobody must log in.
fn refuse_exposure(kinds: &[ListenerKind], config: &ServerConfig) -> Result<(), ServerError> {
    for kind in kinds {
        let address = (kind.address)(config).filter(|address| !is_loopback(address.ip()));
        if let Some(address) = address {
            let reason = format!(
                "{address} can be reached from other machines, and the database has no administrator \
                 who must log in: create one with marigram user add NAME --admin, or listen on \
                 127.0.0.1:{}",
                address.port()
            );
            let setting = kind.setting;
            return Err(ServerError::Setting { setting, reason });
        }
    }
    Ok(())
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
    kind: &ListenerKind,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    let (protocol, option) = (kind.protocol, kind.setting);
    let bound = match TcpListener::bind(address).await {
        Ok(listener) => listener.local_addr().map(|local| (listener, local)),
        Err(error) => Err(error),
    };
    bound.map_err(|source| {
        let advice = match source.kind() {
            std::io::ErrorKind::AddrInUse => format!(
                "another program listens on this address: stop it, or give another address with --{option}"
            ),
            std::io::ErrorKind::PermissionDenied => {
                format!("ports below 1024 need special privileges: give another address with --{option}")
            }
            std::io::ErrorKind::AddrNotAvailable => {
                format!("this machine has no such address: give one of its own with --{option}")
            }
            _ => format!("give another address with --{option}"),
        };
        ServerError::Bind {
            protocol,
            address,
            source,
            advice,
        }
    })
}
