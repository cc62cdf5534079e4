//! TLS client configurations for the operator's servers: PostgreSQL and Redis.
//!
//! Both use rustls with ring and the same verification, and no client certificates.

mod verifier;

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;

use self::verifier::Verifier;
pub use self::verifier::{Authorities, AuthorityError, Verification};

/// Returns a configuration that accepts servers with a certificate of these authorities.
pub fn verified(
    verification: Verification,
    authorities: &Authorities,
) -> Result<Arc<ClientConfig>, AuthorityError> {
    Ok(client(Arc::new(Verifier::verified(verification, authorities.read()?))))
}

/// Returns a configuration that encrypts but accepts any certificate.
pub(crate) fn unverified() -> Arc<ClientConfig> {
    client(Arc::new(Verifier::unverified()))
}

fn client(verifier: Arc<dyn ServerCertVerifier>) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(verifier::provider())
        .with_safe_default_protocol_versions()
        .expect("ring has the usual versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Arc::new(config)
}
