//! Settings of TLS.

use std::path::PathBuf;

/// The lowest version of TLS that the server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2, with forward secrecy and authenticated encryption only.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// Whether a client must show a certificate that the server's `client_ca` signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A client may show none; one that it shows must be valid.
    Optional,
    /// A client without a valid certificate is refused.
    #[default]
    Required,
}

/// Settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// PEM file with the server's certificate, then those that lead to its root.
    pub certificate: PathBuf,
    /// PEM file with the certificate's private key.
    pub key: PathBuf,
    /// PEM file with the certificates that may sign those of clients; clients are not asked for
    /// certificates if absent.
    pub client_ca: Option<PathBuf>,
    /// Whether clients must show certificates.
    pub client_certificates: ClientCertificates,
    /// Whether connections without TLS are refused.
    pub is_required: bool,
    /// The lowest version.
    pub version_min: TlsVersion,
}
