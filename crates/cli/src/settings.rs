//! Settings of the server, from flags, environment, a TOML file and defaults, in this order.
//!
//! One struct serves all sources: clap reads flags and environment into it, serde reads a file, and
//! [`Settings::or`] combines them. So every option exists in every source, and an unknown key is an
//! error.

use crate::log::LogFormat;
use crate::tls_settings::{ClientCertificateRule, TlsVersionName};
use anyhow::{Context, Result, bail};
use clap::Args;
use marigram::{ByteSize, Compaction, Durability, OpenOptions, Span};
use marigram_server::{AuditSettings, ServerConfig, TlsSettings, WebTokenKey};
use serde::Deserialize;
use std::convert::Infallible;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A list of names: `a,b` on the command line and in the environment, also `["a", "b"]` in a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "TextOrList")]
pub(crate) struct NameList(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

impl From<TextOrList> for NameList {
    fn from(given: TextOrList) -> Self {
        let names = match given {
            TextOrList::Text(text) => text.split(',').map(str::to_owned).collect(),
            TextOrList::List(list) => list,
        };
        let trimmed = names.iter().map(|name: &String| name.trim().to_owned());
        Self(trimmed.filter(|name| !name.is_empty()).collect())
    }
}

impl FromStr for NameList {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(TextOrList::Text(text.to_owned()).into())
    }
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct SecretText(String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText")
    }
}

impl FromStr for SecretText {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

/// Declares the settings once, with all that follows from the list.
macro_rules! settings {
    ($($(#[$doc:meta])* $env:literal $value:literal $name:ident: $type:ty,)*) => {
        /// Every setting of `serve`; `None` if it is not set.
        #[derive(Args, Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct Settings {
            $($(#[$doc])* #[arg(long, env = $env, value_name = $value)] pub $name: Option<$type>,)*
        }

        impl Settings {
            /// These settings, and those of `other` for the ones that are not set.
            #[must_use]
            pub(crate) fn or(self, other: Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }
        }
    };
}

settings! {
    /// Data directory; created if missing
    "MARIGRAM_DATA" "DIR" data: PathBuf,
    /// Where HTTP listens, or "off" [default: 127.0.0.1:8086]
    "MARIGRAM_HTTP" "ADDRESS" http: String,
    /// Where PostgreSQL's protocol listens, or "off" [default: 127.0.0.1:5432]
    "MARIGRAM_POSTGRES" "ADDRESS" postgres: String,
    /// Where Arrow Flight SQL listens, such as 127.0.0.1:8815, or "off" [default: off]
    "MARIGRAM_FLIGHT" "ADDRESS" flight: String,
    /// Where OpenTSDB's protocols listen (HTTP and telnet), such as 127.0.0.1:4242, or "off" [default:
    /// off]
    "MARIGRAM_OPENTSDB" "ADDRESS" opentsdb: String,
    /// Database of OpenTSDB's clients [default: main]
    "MARIGRAM_OPENTSDB_DATABASE" "NAME" opentsdb_database: String,
    /// Where Apache IoTDB's Thrift protocol listens, such as 127.0.0.1:6667, or "off" [default: off]
    "MARIGRAM_IOTDB" "ADDRESS" iotdb: String,
    /// Where TDengine's REST API and WebSocket listen, such as 127.0.0.1:6041, or "off" [default: off]
    "MARIGRAM_TDENGINE" "ADDRESS" tdengine: String,
    /// PEM file with the certificate that encrypts connections, and its intermediate certificates
    /// [default: no encryption]
    "MARIGRAM_TLS_CERT" "FILE" tls_cert: PathBuf,
    /// PEM file with the private key of the certificate
    "MARIGRAM_TLS_KEY" "FILE" tls_key: PathBuf,
    /// PEM file with the certificates of the authorities that may sign those of clients [default:
    /// clients need none]
    "MARIGRAM_TLS_CLIENT_CA" "FILE" tls_client_ca: PathBuf,
    /// Whether clients must show a certificate, if there is a tls_client_ca: required or optional
    /// [default: required]
    "MARIGRAM_TLS_CLIENT_CERT" "RULE" tls_client_cert: ClientCertificateRule,
    /// Whether the server refuses connections without encryption, if it has a tls_cert: true or false
    /// [default: true]
    "MARIGRAM_TLS_REQUIRED" "WHETHER" tls_required: bool,
    /// Lowest version of TLS: 1.2 or 1.3 [default: 1.2]
    "MARIGRAM_TLS_MIN_VERSION" "VERSION" tls_min_version: TlsVersionName,
    /// Secret that signs the JSON Web Tokens that HTTP accepts, at least 16 bytes; other users can see
    /// arguments, so give it in the configuration file or the environment [default: none are accepted]
    #[arg(hide_env_values = true)]
    "MARIGRAM_JWT_SECRET" "SECRET" jwt_secret: SecretText,
    /// File for the audit log: logins, refusals, changes of definitions, users and stored rows
    /// [default: none]
    "MARIGRAM_AUDIT_LOG" "FILE" audit_log: PathBuf,
    /// Size at which the audit log begins a new file [default: 16MiB]
    "MARIGRAM_AUDIT_LOG_SIZE" "SIZE" audit_log_size: ByteSize,
    /// Number of files of the audit log, including the newest [default: 8]
    "MARIGRAM_AUDIT_LOG_FILES" "NUMBER" audit_log_files: usize,
    /// Hosts under which HTTP accepts requests, besides its own addresses: names, *.name for all
    /// below it, or * [default: localhost, loopback and the address that a connection comes to]
    "MARIGRAM_ALLOWED_HOSTS" "HOSTS" allowed_hosts: NameList,
    /// Origins of web pages that may use HTTP, such as https://grafana.example.com [default: none]
    "MARIGRAM_ALLOWED_ORIGINS" "ORIGINS" allowed_origins: NameList,
    /// Folder into which clients of HTTP may take backups [default: no backups by request]
    "MARIGRAM_BACKUP_DIR" "DIR" backup_dir: PathBuf,
    /// What to log: error, warn, info, debug, trace, or a filter by module [default: info]
    "MARIGRAM_LOG" "LEVEL" log: String,
    /// Format of the log's lines: text, or json for one JSON object per line [default: text]
    "MARIGRAM_LOG_FORMAT" "FORM" log_format: LogFormat,
    /// Duration after which the log reports a statement, with its text; 0 for never [default: 10s]
    "MARIGRAM_SLOW_STATEMENT" "TIME" slow_statement: Span,
    /// When an acknowledged write is safe from power loss: fsync, interval, os [default: fsync]
    "MARIGRAM_DURABILITY" "WHEN" durability: Durability,
    /// Longest time without a sync with durability "interval" [default: 1s]
    "MARIGRAM_SYNC_INTERVAL" "TIME" sync_interval: Span,
    /// Memory ceiling, such as 512MB [default: half of the machine's]
    "MARIGRAM_MEMORY_LIMIT" "SIZE" memory_limit: ByteSize,
    /// Shards of a new data directory [default: one per core]
    "MARIGRAM_SHARDS" "NUMBER" shards: usize,
    /// Size at which a shard's memtable is flushed [default: by memory limit, 4MiB to 64MiB]
    "MARIGRAM_FLUSH_SIZE" "SIZE" flush_size: ByteSize,
    /// Age at which a memtable is flushed; 0 for never [default: 10m]
    "MARIGRAM_FLUSH_AGE" "TIME" flush_age: Span,
    /// Threads for flush, compaction and retention [default: one per two cores]
    "MARIGRAM_BACKGROUND_THREADS" "NUMBER" background_threads: usize,
    /// Which compaction goes first: balance, inner_cross, cross_inner [default: balance]
    "MARIGRAM_COMPACTION" "POLICY" compaction: Compaction,
    /// Bytes per second that compaction may read and write; 0 for no limit [default: 0]
    "MARIGRAM_COMPACTION_RATE" "SIZE" compaction_rate: ByteSize,
    /// How long files that nothing names wait in the folder trash; 0 removes them at once [default:
    /// 1d]
    "MARIGRAM_TRASH_RETENTION" "TIME" trash_retention: Span,
    /// Threads that answer queries [default: one per core]
    "MARIGRAM_QUERY_THREADS" "NUMBER" query_threads: usize,
    /// Segment files kept open at once [default: what the limit on open files leaves]
    "MARIGRAM_OPEN_FILES" "NUMBER" open_files: usize,
    /// Approximate number of rows per row group, and the most rows of a page [default: 1048576]
    "MARIGRAM_ROW_GROUP_ROWS" "ROWS" row_group_rows: usize,
    /// Directory under which COPY may read and write files [default: none; COPY touches no files]
    "MARIGRAM_COPY_DIR" "DIR" copy_dir: PathBuf,
    /// Whether writes of line protocol create their database: true or false [default: true]
    "MARIGRAM_WRITE_CREATES_DATABASES" "WHETHER" write_creates_databases: bool,
    /// Largest request body as sent [default: 64MiB]
    "MARIGRAM_BODY_LIMIT" "SIZE" body_limit: ByteSize,
    /// Largest request body once decompressed [default: 256MiB]
    "MARIGRAM_UNPACKED_LIMIT" "SIZE" unpacked_limit: ByteSize,
    /// Request bodies in memory at once, over all connections [default: 512MiB]
    "MARIGRAM_BUFFERED_LIMIT" "SIZE" buffered_limit: ByteSize,
    /// Writes and queries running at once; further ones must retry later [default: 256]
    "MARIGRAM_REQUESTS_MAX" "NUMBER" requests_max: usize,
    /// Open connections of each protocol [default: 1000]
    "MARIGRAM_CONNECTIONS_MAX" "NUMBER" connections_max: usize,
    /// Time after which the server stops a statement; 0 for never [default: 0]
    "MARIGRAM_STATEMENT_TIMEOUT" "TIME" statement_timeout: Span,
    /// Time after which the server disconnects a client that reads nothing of its answer; 0 for never
    /// [default: 1m]
    "MARIGRAM_WRITE_TIMEOUT" "TIME" write_timeout: Span,
}

/// Size and number of the audit log's files, if the operator does not say.
const AUDIT_BYTES: usize = 16 << 20;
const AUDIT_FILES: usize = 8;
/// Smallest size: a file has room for some statements.
const AUDIT_BYTES_MIN: usize = 64 << 10;
/// A new file renames all others.
const AUDIT_FILES_MAX: usize = 1000;

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or holds an unknown key or a value that its key cannot have.
    pub(crate) fn from_file(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in the configuration {}", path.display()))
    }

    /// The options with which the database is opened.
    pub(crate) fn open_options(&self) -> OpenOptions {
        let mut options = OpenOptions::default();
        options.shards = self.shards;
        options.durability = self.durability;
        options.sync_interval = self.sync_interval;
        options.memory_limit = self.memory_limit;
        options.flush_size = self.flush_size;
        options.flush_age = self.flush_age;
        options.background_threads = self.background_threads;
        options.compaction = self.compaction;
        options.compaction_rate = self.compaction_rate;
        options.trash_retention = self.trash_retention;
        options.query_threads = self.query_threads;
        options.open_files = self.open_files;
        options.row_group_rows = self.row_group_rows;
        options.copy_dir.clone_from(&self.copy_dir);
        options
    }

    /// The configuration of the servers.
    ///
    /// # Errors
    /// If an address is invalid.
    pub(crate) fn server_config(&self) -> Result<ServerConfig> {
        let mut config = ServerConfig::default();
        if let Some(http) = &self.http {
            config.http = address("http", http)?;
        }
        if let Some(postgres) = &self.postgres {
            config.postgres = address("postgres", postgres)?;
        }
        if let Some(flight) = &self.flight {
            config.flight = address("flight", flight)?;
        }
        if let Some(opentsdb) = &self.opentsdb {
            config.opentsdb = address("opentsdb", opentsdb)?;
        }
        if let Some(database) = &self.opentsdb_database {
            config.opentsdb_database.clone_from(database);
        }
        if let Some(iotdb) = &self.iotdb {
            config.iotdb = address("iotdb", iotdb)?;
        }
        if let Some(tdengine) = &self.tdengine {
            config.tdengine = address("tdengine", tdengine)?;
        }
        let addresses = [
            config.http,
            config.postgres,
            config.flight,
            config.opentsdb,
            config.iotdb,
            config.tdengine,
        ];
        if addresses.iter().all(Option::is_none) {
            bail!(
                "http, postgres, flight, opentsdb, iotdb and tdengine are all off: nothing would listen"
            );
        }
        self.refuse_zeros()?;
        config.tls = self.tls()?;
        config.audit = self.audit()?;
        config.web_token_key = match &self.jwt_secret {
            Some(SecretText(secret)) => {
                let key = WebTokenKey::new(secret);
                Some(key.context("jwt_secret is too short: give at least 16 bytes")?)
            }
            None => None,
        };
        config.backup_dir.clone_from(&self.backup_dir);
        config.allowed_hosts = self.allowed_hosts.clone().unwrap_or_default().0;
        config.allowed_origins = self.allowed_origins.clone().unwrap_or_default().0;
        config.write_creates_databases = self
            .write_creates_databases
            .unwrap_or(config.write_creates_databases);
        let size = |size: Option<ByteSize>, default| size.map_or(default, |size| size.0);
        config.body_limit = size(self.body_limit, config.body_limit);
        config.unpacked_limit = size(self.unpacked_limit, config.unpacked_limit);
        config.buffered_bytes_max = size(self.buffered_limit, config.buffered_bytes_max);
        config.requests_max = self.requests_max.unwrap_or(config.requests_max);
        config.connections_max = self.connections_max.unwrap_or(config.connections_max);
        let ms = |time: Span| u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX);
        config.statement_timeout_ms = self
            .statement_timeout
            .map_or(config.statement_timeout_ms, ms);
        config.slow_statement_ms = self.slow_statement.map_or(config.slow_statement_ms, ms);
        config.write_timeout_ms = self.write_timeout.map_or(config.write_timeout_ms, ms);
        Ok(config)
    }
}

impl Settings {
    /// The settings of the audit log, if there is one.
    fn audit(&self) -> Result<Option<AuditSettings>> {
        let Some(path) = &self.audit_log else {
            let others = [
                ("audit_log_size", self.audit_log_size.is_some()),
                ("audit_log_files", self.audit_log_files.is_some()),
            ];
            if let Some((name, _)) = others.iter().find(|(_, is_set)| *is_set) {
                bail!("{name} needs audit_log, the file to write");
            }
            return Ok(None);
        };
        let bytes = self.audit_log_size.map_or(AUDIT_BYTES, |size| size.0);
        let files_max = self.audit_log_files.unwrap_or(AUDIT_FILES);
        if bytes < AUDIT_BYTES_MIN {
            bail!("audit_log_size must be at least 64KiB");
        }
        if !(1..=AUDIT_FILES_MAX).contains(&files_max) {
            bail!("audit_log_files must be from 1 to {AUDIT_FILES_MAX}");
        }
        Ok(Some(AuditSettings {
            path: path.clone(),
            file_bytes_max: bytes as u64,
            files_max,
        }))
    }

    /// The settings of TLS, if there is a certificate.
    fn tls(&self) -> Result<Option<TlsSettings>> {
        let (certificate, key) = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            (Some(_), None) => bail!("tls_cert needs tls_key, the file with its private key"),
            (None, Some(_)) => bail!("tls_key needs tls_cert, the file with its certificate"),
            (None, None) => {
                let others = [
                    ("tls_client_ca", self.tls_client_ca.is_some()),
                    ("tls_client_cert", self.tls_client_cert.is_some()),
                    ("tls_required", self.tls_required == Some(true)),
                    ("tls_min_version", self.tls_min_version.is_some()),
                ];
                if let Some((name, _)) = others.iter().find(|(_, is_set)| *is_set) {
                    bail!("{name} needs a certificate: set tls_cert and tls_key");
                }
                return Ok(None);
            }
        };
        if self.tls_client_cert.is_some() && self.tls_client_ca.is_none() {
            bail!("tls_client_cert needs tls_client_ca, the file with those who sign clients");
        }
        Ok(Some(TlsSettings {
            certificate,
            key,
            client_ca: self.tls_client_ca.clone(),
            client_certificates: self.tls_client_cert.unwrap_or_default().into(),
            is_required: self.tls_required.unwrap_or(true),
            version_min: self.tls_min_version.unwrap_or_default().into(),
        }))
    }

    /// An error for a limit of 0 that would block everything.
    fn refuse_zeros(&self) -> Result<()> {
        let bytes = |size: Option<ByteSize>| size.map(|size| size.0);
        let limits = [
            ("requests_max", self.requests_max, "request"),
            ("connections_max", self.connections_max, "connection"),
            ("body_limit", bytes(self.body_limit), "body"),
            ("unpacked_limit", bytes(self.unpacked_limit), "packed body"),
            ("buffered_limit", bytes(self.buffered_limit), "body"),
        ];
        for (name, value, what) in limits {
            if value == Some(0) {
                bail!("{name} = 0 would let no {what} through: give at least 1, or leave it out");
            }
        }
        Ok(())
    }
}

/// An address such as `127.0.0.1:8086`, `localhost:8086` or `off`.
fn address(name: &str, text: &str) -> Result<Option<SocketAddr>> {
    if matches!(text, "off" | "none" | "") {
        return Ok(None);
    }
    let found = text.to_socket_addrs().with_context(|| {
        format!("{name} = '{text}' is not an address; write one such as 127.0.0.1:8086, or off")
    })?;
    let addresses: Vec<SocketAddr> = found.collect();
    let v4 = addresses.iter().find(|address| address.is_ipv4());
    match v4.or(addresses.first()) {
        Some(address) => Ok(Some(*address)),
        None => bail!("{name} = '{text}' names no address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_server::{ClientCertificates, TlsVersion};

    #[test]
    fn flags_come_before_the_file() {
        let flags = Settings {
            shards: Some(2),
            ..Settings::default()
        };
        let file: Settings = toml::from_str(
            "shards = 8\nlog_format = 'json'\nslow_statement = '2s'\nhttp = 'off'\nmemory_limit = '512MB'\nstatement_timeout = '30s'",
        )
        .unwrap();
        let both = flags.or(file);
        assert_eq!(both.shards, Some(2));
        assert_eq!(both.log_format, Some(LogFormat::Json));
        let config = both.server_config().unwrap();
        assert_eq!(config.http, None);
        assert_eq!(config.postgres.map(|address| address.port()), Some(5432));
        assert_eq!(config.statement_timeout_ms, 30_000);
        assert_eq!(config.slow_statement_ms, 2_000);
        assert!(config.write_creates_databases);
        let strict: Settings = toml::from_str("write_creates_databases = false").unwrap();
        assert!(!strict.server_config().unwrap().write_creates_databases);
    }

    #[test]
    fn lists_of_names_are_read_in_both_forms() {
        let names = |text: &str| toml::from_str::<Settings>(text).unwrap().allowed_hosts;
        let both = Some(NameList(vec!["a.example".into(), "*.b.example".into()]));
        assert_eq!(names("allowed_hosts = 'a.example, *.b.example,'"), both);
        assert_eq!(names("allowed_hosts = ['a.example', '*.b.example']"), both);
        assert_eq!("a.example,*.b.example".parse().ok(), both);
        let settings: Settings = toml::from_str(
            "allowed_origins = 'https://a.example'\nwrite_timeout = '5s'\nallowed_hosts = []",
        )
        .unwrap();
        let config = settings.server_config().unwrap();
        assert_eq!(config.allowed_origins, ["https://a.example"]);
        assert!(config.allowed_hosts.is_empty());
        assert_eq!(config.write_timeout_ms, 5_000);
        let default = Settings::default().server_config().unwrap();
        assert_eq!(default.write_timeout_ms, 60_000);
    }

    #[test]
    fn encryption_needs_a_certificate_and_its_key() {
        let tls = |text: &str| {
            let settings: Settings = toml::from_str(text).unwrap();
            settings.server_config().map(|config| config.tls)
        };
        assert_eq!(tls("tls_required = false").unwrap(), None);
        let both = "tls_cert = 'c.pem'\ntls_key = 'k.pem'\n";
        let plain = tls(both).unwrap().unwrap();
        assert!(plain.is_required && plain.client_ca.is_none());
        assert_eq!(plain.version_min, TlsVersion::V1_2);
        let all = "tls_client_ca = 'ca.pem'\ntls_client_cert = 'optional'\n\
                   tls_required = false\ntls_min_version = '1.3'";
        let given = tls(&format!("{both}{all}")).unwrap().unwrap();
        assert_eq!(given.client_certificates, ClientCertificates::Optional);
        assert_eq!(given.version_min, TlsVersion::V1_3);
        assert!(!given.is_required);
        for (text, named) in [
            ("tls_cert = 'c.pem'", "tls_key"),
            ("tls_key = 'k.pem'", "tls_cert"),
            ("tls_required = true", "tls_cert"),
            ("tls_client_ca = 'ca.pem'", "tls_cert"),
            ("tls_min_version = '1.3'", "tls_cert"),
            (
                &format!("{both}tls_client_cert = 'required'"),
                "tls_client_ca",
            ),
        ] {
            let error = tls(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        assert!(toml::from_str::<Settings>("tls_min_version = '1.1'").is_err());
    }

    #[test]
    fn the_audit_log_has_bounds() {
        let audit = |text: &str| {
            let settings: Settings = toml::from_str(text).unwrap();
            settings.server_config().map(|config| config.audit)
        };
        assert_eq!(audit("").unwrap(), None);
        let log = audit("audit_log = 'a.jsonl'").unwrap().unwrap();
        assert_eq!((log.file_bytes_max, log.files_max), (16 << 20, 8));
        let log = audit("audit_log = 'a.jsonl'\naudit_log_size = '1MiB'\naudit_log_files = 2");
        let log = log.unwrap().unwrap();
        assert_eq!((log.file_bytes_max, log.files_max), (1 << 20, 2));
        for wrong in [
            "audit_log_files = 2",
            "audit_log_size = '1MiB'",
            "audit_log = 'a'\naudit_log_files = 0",
            "audit_log = 'a'\naudit_log_size = '1KiB'",
        ] {
            assert!(audit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_long_and_is_not_shown() {
        let settings: Settings = toml::from_str("jwt_secret = 'sixteen bytes ok'").unwrap();
        assert!(!format!("{settings:?}").contains("sixteen"));
        let config = settings.server_config().unwrap();
        assert!(config.web_token_key.is_some() && !format!("{config:?}").contains("sixteen"));
        let short: Settings = toml::from_str("jwt_secret = 'short'").unwrap();
        let error = short.server_config().unwrap_err().to_string();
        assert!(
            error.contains("jwt_secret") && !error.contains("'short'"),
            "{error}"
        );
    }

    #[test]
    fn limits_that_let_nothing_through_are_refused() {
        for name in [
            "requests_max",
            "connections_max",
            "body_limit",
            "unpacked_limit",
            "buffered_limit",
        ] {
            let with = |value: &str| {
                let settings: Settings = toml::from_str(&format!("{name} = {value}")).unwrap();
                settings.server_config()
            };
            let (none, one) = if name.ends_with("_max") {
                ("0", "1")
            } else {
                ("'0'", "'1'")
            };
            let error = with(none).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} = 0")), "{error}");
            assert!(with(one).is_ok(), "{name}");
        }
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named() {
        let unknown = toml::from_str::<Settings>("htpp = 'off'")
            .unwrap_err()
            .to_string();
        assert!(
            unknown.contains("htpp") && unknown.contains("http"),
            "{unknown}"
        );
        let bad = toml::from_str::<Settings>("memory_limit = 'lots'")
            .unwrap_err()
            .to_string();
        assert!(bad.contains("lots"), "{bad}");
        let address = Settings {
            http: Some("8086".into()),
            ..Settings::default()
        };
        assert!(
            address
                .server_config()
                .unwrap_err()
                .to_string()
                .contains("8086")
        );
        let deaf = Settings {
            http: Some("off".into()),
            postgres: Some("off".into()),
            ..Settings::default()
        };
        assert!(deaf.server_config().is_err());
        let metrics: Settings = toml::from_str(
            "http = 'off'\npostgres = 'off'\nopentsdb = '127.0.0.1:4242'\nopentsdb_database = 'm'",
        )
        .unwrap();
        let config = metrics.server_config().unwrap();
        assert_eq!(config.opentsdb.map(|address| address.port()), Some(4242));
        assert_eq!(config.opentsdb_database, "m");
    }
}
