//! What the drivers of databases without SQL share: a server that takes line protocol over HTTP.

use crate::install;
use crate::write_history::WriteHistory;
use anyhow::{Context, Result};
use marigram_lab::data::Table;
use marigram_lab::target::Settings;
use marigram_lab_drivers::http::Http;
use marigram_lab_drivers::instance::Instance;
use marigram_lab_drivers::process::{Program, free_port};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The command of a server, given the folder of the peers, the folder of its files, its port, and the
/// memory that it may use.
type Server = fn(&Path, &Path, u16, Option<u64>) -> Result<Program>;

/// An instance of such a server.
pub(crate) struct LineServer {
    pub instance: Instance,
    pub http: Http,
    /// What was written since the last start.
    pub history: Arc<WriteHistory>,
    /// Its name in the list of peers.
    name: &'static str,
    /// The path that answers when the server is up.
    health: &'static str,
}

/// What a client needs.
pub(crate) struct LineClient {
    pub http: Http,
    pub tables: Arc<[Table]>,
    pub history: Arc<WriteHistory>,
}

impl LineServer {
    /// The peer `name`, which answers at the path `health` when it is up. Fails if the laboratory would
    /// have to start it and it is not installed.
    pub(crate) fn new(
        name: &'static str,
        health: &'static str,
        settings: &Settings,
    ) -> Result<Self> {
        if settings.url.is_none() {
            install::installed(&settings.peers, name)?;
        }
        Ok(Self {
            instance: Instance::new(settings),
            http: Http::new(settings.url.as_deref().unwrap_or_default()),
            history: Arc::default(),
            name,
            health,
        })
    }

    /// Starts `server` with its files in `dir`, or checks that somebody else's instance answers.
    pub(crate) fn start(&mut self, server: Server, dir: &Path) -> Result<()> {
        self.history = Arc::default();
        if self.instance.url().is_some() {
            let answer = self.http.get(self.health);
            answer.with_context(|| format!("{} does not answer", self.name))?;
            return Ok(());
        }
        let (port, settings) = (free_port()?, self.instance.settings());
        let program = server(&settings.peers, dir, port, settings.memory_bytes)?;
        self.http = Http::new(&format!("http://127.0.0.1:{port}"));
        let (http, health) = (&self.http, self.health);
        self.instance.start(program, || http.get(health).is_ok())
    }

    /// Its version, or `elsewhere` and the address of somebody else's instance.
    pub(crate) fn version(&self, elsewhere: &str) -> String {
        match self.instance.url() {
            Some(url) => format!("{elsewhere}{url}"),
            None => {
                let peers = &self.instance.settings().peers;
                install::version(peers, self.name).unwrap_or_default()
            }
        }
    }

    /// A client of `tables`.
    pub(crate) fn client(&self, tables: &Arc<[Table]>) -> LineClient {
        LineClient {
            http: Http::new(self.http.base()),
            tables: Arc::clone(tables),
            history: Arc::clone(&self.history),
        }
    }

    /// Restarts the server, and returns the time until `probe`, a query about its data, has the same
    /// answer as before; without a query, the time until the server is up.
    pub(crate) fn restart(
        &mut self,
        probe: Option<impl Fn(&Http) -> Result<Vec<u8>>>,
    ) -> Result<Option<Duration>> {
        let (http, health) = (&self.http, self.health);
        match probe {
            Some(probe) => self.instance.restart(|| probe(http), PartialEq::eq),
            None => self.instance.restart(|| http.get(health), |_, _| true),
        }
    }
}
