//! The server's certificate: PEM files to a configuration of rustls.
//!
//! Invariant: the private key is in no error and in no `Debug` text.

use super::settings::{ClientCertificates, TlsSettings, TlsVersion};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::ObjectIdentifier;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct TlsError {
    /// The setting whose file is wrong.
    pub setting: &'static str,
    /// What is wrong, and what to do.
    pub reason: String,
    /// Digest of what was read, to know it again.
    pub(super) digest: [u8; 32],
}

/// What a connection shows to its client, and asks of it.
pub(super) struct TlsIdentity {
    /// The configuration, without protocols.
    pub config: ServerConfig,
    /// The hash of the certificate for channel binding, `tls-server-end-point` of RFC 5929; none for
    /// certificates whose signature names no hash.
    pub end_point: Option<Arc<[u8]>>,
    /// Digest of the files.
    pub digest: [u8; 32],
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity")
    }
}

/// The files' contents so far, to name what was wrong.
struct TlsFiles(Sha256);

impl TlsFiles {
    fn read(&mut self, setting: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| {
            let limited = &mut file.take(FILE_BYTES_MAX + 1);
            limited.read_to_end(&mut bytes)
        });
        // Where one file ends and the next begins is part of the digest.
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(&bytes);
        match read {
            Ok(_) if bytes.len() as u64 <= FILE_BYTES_MAX => Ok(bytes),
            Ok(_) => Err(self.error(setting, format!("{} is larger than 1 MiB", path.display()))),
            Err(error) => {
                Err(self.error(setting, format!("cannot read {}: {error}", path.display())))
            }
        }
    }

    fn certificates(
        &mut self,
        setting: &'static str,
        path: &Path,
    ) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let bytes = self.read(setting, path)?;
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let name = path.display();
        match read {
            Ok(certificates) if certificates.is_empty() => {
                let reason = format!("{name} has no certificate in PEM (BEGIN CERTIFICATE)");
                Err(self.error(setting, reason))
            }
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(self.error(setting, format!("{name} is not PEM: {error}"))),
        }
    }

    fn key(&mut self, path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
        let bytes = self.read("tls_key", path)?;
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
            let name = path.display();
            let reason = format!(
                "{name} has no private key in PEM without a passphrase (BEGIN PRIVATE KEY)"
            );
            self.error("tls_key", reason)
        })
    }

    fn error(&self, setting: &'static str, reason: String) -> TlsError {
        // The reason belongs to it: a file may become readable without being another one.
        let digest = self.0.clone().chain_update(reason.as_bytes()).finalize();
        TlsError {
            setting,
            reason,
            digest: digest.into(),
        }
    }
}

impl TlsIdentity {
    /// Reads the files.
    pub(super) fn read(settings: &TlsSettings) -> Result<Self, TlsError> {
        let mut files = TlsFiles(Sha256::new());
        let certificates = files.certificates("tls_cert", &settings.certificate)?;
        let key = files.key(&settings.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = match &settings.client_ca {
            Some(path) => Some(client_verifier(&mut files, path, settings, &provider)?),
            None => None,
        };
        let end_point = certificates.first().and_then(end_point_of);
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions(settings.version_min))
            .map_err(|error| files.error("tls_min_version", error.to_string()))?;
        let config = match verifier {
            Some(verifier) => config.with_client_cert_verifier(verifier),
            None => config.with_no_client_auth(),
        };
        let config = config
            .with_single_cert(certificates, key)
            .map_err(|error| {
                let reason = format!(
                    "{} and {} cannot be used together: {error}",
                    settings.certificate.display(),
                    settings.key.display()
                );
                files.error("tls_key", reason)
            })?;
        Ok(Self {
            config,
            end_point: end_point.map(Arc::from),
            digest: files.0.finalize().into(),
        })
    }
}

fn versions(min: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static ALL: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match min {
        TlsVersion::V1_2 => &ALL,
        TlsVersion::V1_3 => &ALL[..1],
    }
}

fn client_verifier(
    files: &mut TlsFiles,
    path: &Path,
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let wrong = |files: &TlsFiles, error: &dyn fmt::Display| {
        let reason = format!("{} cannot sign clients: {error}", path.display());
        files.error("tls_client_ca", reason)
    };
    let mut roots = RootCertStore::empty();
    for certificate in files.certificates("tls_client_ca", path)? {
        roots
            .add(certificate)
            .map_err(|error| wrong(files, &error))?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = match settings.client_certificates {
        ClientCertificates::Optional => verifier.allow_unauthenticated(),
        ClientCertificates::Required => verifier,
    };
    verifier.build().map_err(|error| wrong(files, &error))
}

/// Signature algorithms and the size of their hash in bits (RFC 3279, RFC 4055, RFC 5758).
const SIGNATURES: [(&str, u16); 8] = [
    // MD5 and SHA-1 are replaced by SHA-256 (RFC 5929, section 4.1).
    ("1.2.840.113549.1.1.4", 256),
    ("1.2.840.113549.1.1.5", 256),
    ("1.2.840.113549.1.1.11", 256),
    ("1.2.840.113549.1.1.12", 384),
    ("1.2.840.113549.1.1.13", 512),
    ("1.2.840.10045.4.3.2", 256),
    ("1.2.840.10045.4.3.3", 384),
    ("1.2.840.10045.4.3.4", 512),
];

/// The hash of a certificate by the function that its own signature uses.
fn end_point_of(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let signed = parsed.signature_algorithm.oid;
    let is_it = |oid: &str| ObjectIdentifier::new(oid).is_ok_and(|oid| oid == signed);
    let (_, bits) = SIGNATURES.iter().find(|(oid, _)| is_it(oid))?;
    Some(match bits {
        384 => Sha384::digest(certificate).to_vec(),
        512 => Sha512::digest(certificate).to_vec(),
        _ => Sha256::digest(certificate).to_vec(),
    })
}
