//! Whom a connection is made to.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What is verified of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An authority vouches for it.
    Authority,
    /// An authority vouches for it, under the name that it was called by.
    AuthorityAndName,
}

/// Who may vouch for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorities {
    /// Those that the system trusts, or `SSL_CERT_FILE` names.
    System,
    /// Those whose certificates are in a file.
    File(PathBuf),
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Why there is nobody who could vouch for a server.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The machine trusts nobody.
    #[error(
        "no certificates of authorities are on this machine; install ca-certificates, or set SSL_CERT_FILE"
    )]
    System,
    /// The file is of no use.
    #[error("{} {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Authorities {
    pub(super) fn read(&self) -> Result<RootCertStore, AuthorityError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(match self {
            Self::System => rustls_native_certs::load_native_certs().certs,
            Self::File(path) => certificates(path)?,
        });
        if !roots.is_empty() {
            return Ok(roots);
        }
        Err(match self {
            Self::System => AuthorityError::System,
            Self::File(path) => AuthorityError::File {
                path: path.clone(),
                reason: "holds no certificate; it is a file of certificates of authorities, as PEM"
                    .to_owned(),
            },
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the operator's own file, in no workspace")]
fn certificates(path: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let text = std::fs::read(path).map_err(|error| AuthorityError::File {
        path: path.to_owned(),
        reason: format!("cannot be read: {error}"),
    })?;
    Ok(CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect())
}

/// Decides whether a server is believed to be who it says.
#[derive(Debug)]
pub(super) struct Trust {
    verified: Option<(Rule, RootCertStore)>,
    provider: Arc<CryptoProvider>,
}

impl Trust {
    /// Believes anybody who has the key of the certificate that is shown.
    pub(super) fn anybody() -> Self {
        Self { verified: None, provider: provider() }
    }

    pub(super) fn verified(rule: Rule, roots: RootCertStore) -> Self {
        Self { verified: Some((rule, roots)), provider: provider() }
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some((rule, roots)) = &self.verified {
            let shown = ParsedCertificate::try_from(shown)?;
            let known = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&shown, roots, between, now, known)?;
            match rule {
                Rule::Authority => {}
                Rule::AuthorityAndName => verify_server_name(&shown, name)?,
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
