//! Which servers the command line believes to be who they say, and how it shows itself to them.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// Certificates for `https://`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TlsTrust {
    /// PEM file with the certificates of the authorities that may sign the server's [default: those of the web]
    #[arg(long, value_name = "FILE", env = "MARIGRAM_TLS_CA")]
    pub tls_ca: Option<PathBuf>,
    /// PEM file with a certificate and its private key, for servers that ask for one
    #[arg(long, value_name = "FILE", env = "MARIGRAM_TLS_IDENTITY")]
    pub tls_identity: Option<PathBuf>,
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>> {
    let pem = read(path)?;
    let mut found = Vec::new();
    for item in ureq::tls::parse_pem(&pem) {
        let item = item.with_context(|| format!("{} is not PEM", path.display()))?;
        if let ureq::tls::PemItem::Certificate(certificate) = item {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        bail!("{} has no certificate in PEM", path.display());
    }
    Ok(found)
}

/// What to do about a certificate that was refused; `None` if the error is another.
pub(crate) fn tls_advice(error: &str) -> Option<&'static str> {
    const ADVICE: [(&str, &str); 4] = [
        (
            "CaUsedAsEndEntity",
            "the server's certificate says that it is an authority (CA:TRUE), as `openssl req -x509` makes \
             them; make it with -addext basicConstraints=critical,CA:FALSE and -addext \
             subjectAltName=DNS:NAME",
        ),
        (
            "UnknownIssuer",
            "--tls-ca FILE names the authority that signed the server's certificate",
        ),
        (
            "NotValidForName",
            "the server's certificate is for another name: write --url with a name that stands in its \
             subjectAltName",
        ),
        (
            "Expired",
            "the server's certificate has expired, or this machine's clock is wrong",
        ),
    ];
    let found = ADVICE.iter().find(|(sign, _)| error.contains(sign));
    found.map(|(_, advice)| *advice)
}

impl TlsTrust {
    /// The configuration of a client.
    ///
    /// # Errors
    /// If a file cannot be read, or has no certificate.
    pub(crate) fn config(&self) -> Result<TlsConfig> {
        let mut config = TlsConfig::builder();
        if let Some(path) = &self.tls_ca {
            config = config.root_certs(RootCerts::new_with_certs(&certificates(path)?));
        }
        if let Some(path) = &self.tls_identity {
            let key = PrivateKey::from_pem(&read(path)?)
                .with_context(|| format!("{} has no private key in PEM", path.display()))?;
            let own = ClientCert::new_with_certs(&certificates(path)?, key);
            config = config.client_cert(Some(own));
        }
        Ok(config.build())
    }
}
