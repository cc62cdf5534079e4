//! TLS client configurations for the operator's servers: PostgreSQL and Redis.
//!
//! Both use rustls with ring and the same verification, and no client certificates.

mod verifier;

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use self::verifier::Verifier;
pub use self::verifier::{Authorities, AuthorityError, Verification};

/// Returns a configuration that accepts servers with a certificate of these authorities.
pub fn verified(
    verification: Verification,
    authorities: &Authorities,
) -> Result<Arc<ClientConfig>, AuthorityError> {
    Ok(client(Some((verification, authorities.read()?))))
}

/// Returns a configuration that encrypts but accepts any certificate.
pub(crate) fn unverified() -> Arc<ClientConfig> {
    client(None)
}

fn client(verification: Option<(Verification, RootCertStore)>) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier { verification, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the usual versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Arc::new(config)
}
