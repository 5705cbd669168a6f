//! Certificates that tests make for themselves. The tests of the command line use this file, too.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests use files and clocks as an operator and a client do"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Somebody who signs certificates.
pub(crate) struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pub pem: String,
}

/// A certificate and its private key, in PEM.
#[derive(Clone)]
pub(crate) struct SignedCertificate {
    pub certificate: String,
    pub key: String,
}

impl CertificateAuthority {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Clients find the issuer of a certificate by its name.
        let name = format!("authority {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    fn sign(&self, params: &CertificateParams) -> SignedCertificate {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        SignedCertificate {
            certificate: signed.pem(),
            key: key.serialize_pem(),
        }
    }

    fn params() -> CertificateParams {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        CertificateParams::new(names).unwrap()
    }

    /// A certificate for this machine.
    pub(crate) fn issue(&self) -> SignedCertificate {
        self.sign(&Self::params())
    }

    /// Its own certificate as a server's, which says that it is an authority.
    #[allow(dead_code, reason = "not all tests that include this file need it")]
    pub(crate) fn as_server() -> SignedCertificate {
        let mut params = Self::params();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self::signed_by_itself(&params)
    }

    /// A certificate for this machine that nobody else signed.
    #[allow(dead_code, reason = "not all tests that include this file need it")]
    pub(crate) fn self_signed() -> SignedCertificate {
        Self::signed_by_itself(&Self::params())
    }

    fn signed_by_itself(params: &CertificateParams) -> SignedCertificate {
        let key = KeyPair::generate().unwrap();
        SignedCertificate {
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// One that ended years ago.
    #[allow(dead_code, reason = "not all tests that include this file need it")]
    pub(crate) fn issue_expired(&self) -> SignedCertificate {
        let mut params = Self::params();
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.sign(&params)
    }

    /// What a client trusts that knows this authority only, and shows `own`.
    pub(crate) fn client(&self, own: Option<&SignedCertificate>) -> ClientConfig {
        self.client_of(own, &[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    pub(crate) fn client_of(
        &self,
        own: Option<&SignedCertificate>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap();
        roots.add(certificate).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                config
                    .with_client_auth_cert(vec![certificate.unwrap()], key)
                    .unwrap()
            }
        }
    }
}

impl SignedCertificate {
    /// Writes both to files of a folder: `cert.pem` and `key.pem`.
    pub(crate) fn write(&self, dir: &Path) -> (PathBuf, PathBuf) {
        let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        std::fs::write(&certificate, &self.certificate).unwrap();
        std::fs::write(&key, &self.key).unwrap();
        (certificate, key)
    }
}
