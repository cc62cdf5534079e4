//! The verification of server certificates.
//!
//! rustls always verifies the name of a server. PostgreSQL's `verify-ca` demands the authority alone, and
//! `require` nothing, so that verification is composed here from the functions that rustls uses. The
//! signature of the handshake is always checked: the server owns the key of its certificate.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// The checks of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// It is signed by a trusted authority, for any name (`verify-ca`).
    Authority,
    /// It is signed by a trusted authority, for the name that was connected to (`verify-full`).
    AuthorityAndName,
}

/// The trusted certificate authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorities {
    /// The authorities of the system, or of `SSL_CERT_FILE`.
    System,
    /// The certificates in a PEM file; certificates that cannot be parsed are skipped.
    File(PathBuf),
}

/// Certificate authorities that could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The system has no certificate authorities.
    #[error(
        "the system has no certificate authorities; install ca-certificates, or set SSL_CERT_FILE"
    )]
    System,
    /// The file cannot be read or contains no certificate.
    #[error("{} {reason}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The problem, as the rest of a sentence that begins with the path.
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
                reason: "contains no certificate; expected certificates of authorities in PEM"
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

#[derive(Debug)]
pub(super) struct Verifier {
    /// `None` accepts any server that owns the key of its certificate.
    pub(super) verification: Option<(Verification, RootCertStore)>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some((verification, roots)) = &self.verification {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
            match verification {
                Verification::Authority => {}
                Verification::AuthorityAndName => verify_server_name(&certificate, name)?,
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
