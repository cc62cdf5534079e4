//! Encrypted connections to servers of the operator.

mod trust;

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;

use self::trust::Trust;
pub use self::trust::{Authorities, AuthorityError, Rule};

/// Prepares connections to servers that an authority vouches for.
pub fn verified(
    rule: Rule,
    authorities: &Authorities,
) -> Result<Arc<ClientConfig>, AuthorityError> {
    Ok(client(Arc::new(Trust::verified(rule, authorities.read()?))))
}

/// Prepares connections to whoever answers.
pub(crate) fn unverified() -> Arc<ClientConfig> {
    client(Arc::new(Trust::anybody()))
}

fn client(trust: Arc<dyn ServerCertVerifier>) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(trust::provider())
        .with_safe_default_protocol_versions()
        .expect("ring has the usual versions")
        .dangerous()
        .with_custom_certificate_verifier(trust)
        .with_no_client_auth();
    Arc::new(config)
}
