//! `marigram serve`: the server.
//!
//! Invariant: a stop signal leads to a flush and releases the directory; a second signal ends the
//! process at once, which loses nothing that was acknowledged.

use crate::descriptors::{self, DescriptorReport};
use crate::directory;
use crate::log::{self, LogFormat};
use crate::settings::Settings;
use crate::terminal::{self, TextStyle, styled};
use anyhow::{Context, Result, bail};
use clap::Args;
use marigram::Marigram;
use marigram_server::{RunningServers, ServedDatabase, ServerConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long requests may continue after a stop signal.
const GRACE: Duration = Duration::from_secs(10);

/// Run the server.
#[derive(Args)]
pub(crate) struct Serve {
    /// Configuration file (TOML); its keys are the options below, with _ for -
    #[arg(long, value_name = "FILE", env = "MARIGRAM_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Serve {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let file = match &self.config {
            Some(path) => Settings::from_file(path)?,
            None => Settings::default(),
        };
        let mut settings = self.settings.or(file);
        let Some(dir) = settings.data.clone() else {
            bail!(
                "no data directory: give --data DIR (or MARIGRAM_DATA, or data in --config FILE)"
            );
        };
        let mut config = settings.server_config()?;
        let format = settings.log_format.unwrap_or_default();
        log::start(settings.log.as_deref().unwrap_or("info"), format)?;
        let files = descriptors::share(&mut settings, &mut config);
        let options = settings.open_options().whole_process(true);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        marigram::tune_allocator(options.limit_bytes(), cores);
        if !directory::holds_database(&dir) {
            directory::check_room(&dir)?;
            say(
                format,
                &format!("creating a new database in {}", dir.display()),
            );
        }
        let db = options
            .open(&dir)
            .with_context(|| format!("cannot open the data directory {}", dir.display()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("marigram-serve")
            .max_blocking_threads(options.threads_for_waiting())
            .enable_all()
            .build()?;
        let served = runtime.block_on(async {
            let shared = Arc::new(db.clone());
            let services = ServedDatabase {
                ingest: shared.clone(),
                query: shared.clone(),
                languages: shared.clone(),
                access: shared.clone(),
                status: shared.clone(),
                backup: shared,
            };
            let told = config.clone();
            let running = marigram_server::start(config, services).await?;
            print_banner(&dir, &db, &running, &files, &told);
            log_start(&dir, &db, &running);
            if let Some(warning) = readable_wire(&told, &running) {
                say(format, &warning);
            }
            let http = running.http_addr().map(reached);
            directory::tell_address(&dir, http.map(|address| http_url(address, &running)));
            wait_for_signal(&running).await?;
            say(
                format,
                "stopping: requests may finish, then everything is flushed",
            );
            running.shutdown(GRACE).await;
            Ok::<(), anyhow::Error>(())
        });
        runtime.shutdown_background();
        directory::tell_address(&dir, None);
        db.close()
            .context("the last flush failed; the log holds what was acknowledged")?;
        served?;
        say(format, "stopped");
        Ok(ExitCode::SUCCESS)
    }
}

/// Reports to the operator on stderr, as a line of JSON if the log is JSON.
fn say(format: LogFormat, text: &str) {
    match format {
        LogFormat::Text => erroutln!("{text}"),
        LogFormat::Json => tracing::info!("{text}"),
    }
}

/// What an operator should know of listeners that others on the network can listen to.
fn readable_wire(config: &ServerConfig, running: &RunningServers) -> Option<String> {
    let is_open = !config.tls.as_ref().is_some_and(|tls| tls.is_required);
    let addresses = [
        running.http_addr(),
        running.postgres_addr(),
        running.address("opentsdb"),
        running.address("iotdb"),
        running.address("tdengine"),
    ];
    let mut addresses = addresses.into_iter().flatten();
    let is_remote = addresses.any(|address| !address.ip().is_loopback());
    (is_open && is_remote).then(|| {
        let what = if running.has_tls() {
            "connections may be without encryption: set tls_required = true once all clients use it"
        } else {
            "connections are not encrypted: set tls_cert and tls_key"
        };
        format!("warning: passwords, tokens and rows can be read on the network, because {what}")
    })
}

/// Waits for SIGTERM or SIGINT; a second signal ends the process at once. SIGHUP reads certificates
/// again.
async fn wait_for_signal(running: &RunningServers) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => running.reload_tls().await,
        }
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        erroutln!("stopped at once; the log holds what was acknowledged");
        std::process::exit(1);
    });
    Ok(())
}

/// Logs what runs where. The engine reports what recovery found.
fn log_start(dir: &Path, db: &Marigram, running: &RunningServers) {
    let status = db.engine().status();
    let address = |address: Option<SocketAddr>| match address {
        Some(address) => address.to_string(),
        None => "off".to_owned(),
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data = %dir.display(),
        http = address(running.http_addr()),
        postgres = address(running.postgres_addr()),
        flight = address(running.flight_addr()),
        opentsdb = address(running.address("opentsdb")),
        iotdb = address(running.address("iotdb")),
        tdengine = address(running.address("tdengine")),
        memory_limit_bytes = db.engine().memory().limit() as u64,
        tables = status.tables as u64,
        series = status.series,
        segments = status.segments,
        segment_bytes = status.segment_bytes,
        "the server is ready"
    );
}

fn print_banner(
    dir: &Path,
    db: &Marigram,
    running: &RunningServers,
    files: &DescriptorReport,
    config: &ServerConfig,
) {
    let status = db.engine().status();
    let name = styled(
        TextStyle::Bold,
        &format!("Marigram {}", env!("CARGO_PKG_VERSION")),
    );
    let holds = format!(
        "{}, {}",
        terminal::counted(status.tables as u64, "table"),
        terminal::counted(status.series, "series"),
    );
    outln!("{name} serves {} ({holds})", dir.display());
    let (http, postgres) = (running.http_addr(), running.postgres_addr());
    for (title, url) in running.urls() {
        outln!("  {title:<10}  {url}");
    }
    for line in &files.lines {
        outln!("  Files       {line}");
    }
    if let Some(address) = http
        && !address.ip().is_loopback()
    {
        outln!("{}", hosts_told(&config.allowed_hosts));
    }
    outln!("{}", styled(TextStyle::Bold, "Try:"));
    let url = http.map(|address| http_url(reached(address), running));
    for line in suggestions(url, postgres.map(reached)) {
        outln!("  {}", styled(TextStyle::Code, &line));
    }
    outln!("Ctrl-C stops it.");
}

/// Describes the host names under which HTTP accepts requests, for a server that listens beyond
/// this machine.
fn hosts_told(allowed_hosts: &[String]) -> String {
    let named = if allowed_hosts.is_empty() {
        "localhost only: set allowed_hosts to the names that clients use".to_owned()
    } else {
        format!("localhost and {}", allowed_hosts.join(", "))
    };
    format!("HTTP accepts requests under the addresses of this machine and {named}")
}

/// The address at which a client on this machine reaches a listener at `address`.
fn reached(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// The URL of HTTP at an address.
fn http_url(address: SocketAddr, running: &RunningServers) -> String {
    let scheme = if running.has_tls() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// Commands that a newcomer can paste into another terminal.
fn suggestions(http: Option<String>, postgres: Option<SocketAddr>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(http) = http {
        lines.push(format!(
            "curl '{http}/write?db=main' --data-binary 'weather,station=north temp=4.5'"
        ));
        lines.push(format!(
            "curl '{http}/api/v1/sql?db=main' -d 'SELECT * FROM weather'"
        ));
        lines.push(format!("marigram sql --url {http}"));
    }
    if let Some(postgres) = postgres {
        lines.push(format!(
            "psql -h {} -p {} -d main -c 'SELECT * FROM weather'",
            postgres.ip(),
            postgres.port()
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_paste_name_an_address_that_answers() {
        let lines = |address: &str| {
            let reached = reached(address.parse().unwrap());
            suggestions(Some(format!("http://{reached}")), None)
        };
        assert!(lines("0.0.0.0:8086")[0].contains("http://127.0.0.1:8086/"));
        assert!(lines("[::]:8086")[0].contains("http://[::1]:8086/"));
        assert!(lines("10.0.0.7:8086")[0].contains("http://10.0.0.7:8086/"));
    }

    #[test]
    fn the_start_tells_by_which_names_it_may_be_asked() {
        assert!(hosts_told(&[]).contains("set allowed_hosts"));
        let told = hosts_told(&["db.example.com".to_owned()]);
        assert!(told.ends_with("localhost and db.example.com"), "{told}");
    }
}
