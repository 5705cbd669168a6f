//! Words of the settings of TLS.

use clap::ValueEnum;
use marigram_server::{ClientCertificates, TlsVersion};
use serde::Deserialize;

/// Whether clients must show certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificateRule {
    /// A client may show none
    Optional,
    /// A client without one is refused
    #[default]
    Required,
}

impl From<ClientCertificateRule> for ClientCertificates {
    fn from(rule: ClientCertificateRule) -> Self {
        match rule {
            ClientCertificateRule::Optional => Self::Optional,
            ClientCertificateRule::Required => Self::Required,
        }
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
pub enum TlsVersionName {
    /// TLS 1.2
    #[default]
    #[serde(rename = "1.2")]
    #[value(name = "1.2")]
    V1_2,
    /// TLS 1.3
    #[serde(rename = "1.3")]
    #[value(name = "1.3")]
    V1_3,
}

impl From<TlsVersionName> for TlsVersion {
    fn from(version: TlsVersionName) -> Self {
        match version {
            TlsVersionName::V1_2 => Self::V1_2,
            TlsVersionName::V1_3 => Self::V1_3,
        }
    }
}
