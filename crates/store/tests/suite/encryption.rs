//! TLS connections: each `sslmode` with each kind of server.

use std::path::Path;

use carrel_domain::{Code, Coded as _, Secret};
use carrel_store::{Postgres, PostgresOptions, RecordStore as _, StoreError};
use carrel_testkit::servers::{self, TestAuthority};
use pretty_assertions::assert_eq;

/// What became of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Encrypted,
    Plain,
    /// With the beginning of the reason.
    Refused(&'static str),
}

use Made::{Encrypted, Plain, Refused};

const UNKNOWN: Made = Refused("invalid peer certificate: UnknownIssuer");
/// Another authority of the same name.
const IMPOSTOR: Made = Refused("invalid peer certificate: BadSignature");
const NOT_OFFERED: Made = Refused("server does not support TLS");
const OTHER_NAME: Made = Refused("invalid peer certificate: certificate not valid for name");

struct TlsFixture {
    server: servers::PostgresServer,
    host: &'static str,
}

impl TlsFixture {
    fn url(&self, parameters: &str) -> String {
        let (host, port) = (self.host, self.server.port());
        format!("postgresql://carrel:hunter2@{host}:{port}/postgres?{parameters}")
    }

    /// Connects, and asks the server whether that was encrypted.
    async fn connect(&self, parameters: &str) -> Result<bool, StoreError> {
        let url = Secret::new(self.url(parameters));
        let store = Postgres::open(&PostgresOptions { url })?;
        store.migrate().await?;
        store.counts().await?;
        let look = "SELECT bool_and(s.ssl), bool_or(s.ssl) FROM pg_stat_ssl s \
                    JOIN pg_stat_activity a USING (pid) WHERE application_name = 'carrel'";
        let row = self.server.client().await.unwrap().query_one(look, &[]).await.unwrap();
        let (all, any): (bool, bool) = (row.get(0), row.get(1));
        assert_eq!(all, any, "all connections are alike");
        drop(store);
        self.until_alone().await;
        Ok(all)
    }

    async fn until_alone(&self) {
        let look = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'carrel'";
        let client = self.server.client().await.unwrap();
        while client.query_one(look, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    async fn expect(&self, parameters: &str, expected: Made) {
        let message = match (self.connect(parameters).await, &expected) {
            (Ok(true), _) => Encrypted,
            (Ok(false), _) => Plain,
            (Err(error), Refused(why)) => {
                let message = format!("{error} {error:?}");
                assert_eq!(error.code(), Code::StoreUnavailable, "{parameters}: {message}");
                assert!(message.contains(why), "{parameters}: {message}");
                assert!(
                    message.contains("sslmode=") && message.contains("; "),
                    "{parameters}: {message}"
                );
                assert!(!message.contains("hunter2"), "{parameters}: {message}");
                Refused(why)
            }
            (Err(error), _) => panic!("{parameters}: {error:?}"),
        };
        assert_eq!(message, expected, "{parameters}");
    }
}

fn root(mode: &str, certificate: &Path) -> String {
    format!("sslmode={mode}&sslrootcert={}", certificate.display())
}

#[tokio::test]
async fn every_mode_does_what_it_says_with_a_server_that_encrypts() {
    let (known, impostor) = (TestAuthority::new(), TestAuthority::new());
    let server = servers::PostgresServer::start_encrypted(&known, "localhost", "sha256").await;
    let (known, impostor) = (known.certificate(), impostor.certificate());
    let mut fixture = TlsFixture { server, host: "localhost" };
    fixture.expect("sslmode=disable", Plain).await;
    fixture.expect("", Encrypted).await;
    fixture.expect("sslmode=prefer", Encrypted).await;
    fixture.expect("sslmode=require", Encrypted).await;
    for mode in ["require", "verify-ca", "verify-full"] {
        fixture.expect(&root(mode, &known), Encrypted).await;
        fixture.expect(&root(mode, &impostor), IMPOSTOR).await;
    }
    fixture.expect("sslmode=verify-ca", UNKNOWN).await;
    fixture.expect("sslmode=verify-full", UNKNOWN).await;
    fixture.expect("sslrootcert=system", UNKNOWN).await;

    fixture.host = "127.0.0.1";
    fixture.expect("sslmode=require", Encrypted).await;
    fixture.expect(&root("require", &known), Encrypted).await;
    fixture.expect(&root("verify-ca", &known), Encrypted).await;
    fixture.expect(&root("verify-full", &known), OTHER_NAME).await;
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_is_used_only_if_the_mode_allows_it() {
    let authority = TestAuthority::new();
    let fixture = TlsFixture { server: servers::PostgresServer::start().await, host: "localhost" };
    fixture.expect("sslmode=disable", Plain).await;
    fixture.expect("", Plain).await;
    fixture.expect("sslmode=prefer", Plain).await;
    fixture.expect("sslmode=require", NOT_OFFERED).await;
    for mode in ["require", "verify-ca", "verify-full"] {
        fixture.expect(&root(mode, &authority.certificate()), NOT_OFFERED).await;
    }
}

#[tokio::test]
async fn a_password_is_tied_to_the_connection_whatever_hash_the_certificate_is_signed_with() {
    let (curve, rsa) = (TestAuthority::new(), TestAuthority::with_rsa());
    for (authority, hash) in [(&curve, "sha384"), (&rsa, "sha256"), (&rsa, "sha512")] {
        let server = servers::PostgresServer::start_encrypted(authority, "localhost", hash).await;
        let make = "CREATE ROLE bound SUPERUSER LOGIN PASSWORD 'hunter2'";
        server.client().await.unwrap().batch_execute(make).await.unwrap();
        let open = |password: &str, parameters: &str| {
            let port = server.port();
            let url =
                format!("postgresql://bound:{password}@localhost:{port}/postgres?{parameters}");
            Postgres::open(&PostgresOptions { url: Secret::new(url) }).unwrap()
        };
        let bound = root("verify-full", &authority.certificate()) + "&channel_binding=require";
        open("hunter2", &bound).migrate().await.unwrap();
        assert!(open("hunter3", &bound).migrate().await.is_err(), "{hash}");
        assert!(open("hunter2", "sslmode=disable").migrate().await.is_err(), "{hash}");
    }
}

#[tokio::test]
async fn a_file_of_authorities_that_is_none_is_refused_before_anything_is_sent() {
    for (path, rule) in [("/dev/null", "contains no certificate"), ("/no/such", "cannot be read")] {
        let asked = root("verify-full", Path::new(path));
        let url = format!("postgresql://u:hunter2@localhost/d?{asked}");
        let message = Postgres::open(&PostgresOptions { url: Secret::new(url) }).unwrap_err();
        let message = format!("{message} {message:?}");
        assert!(message.contains(rule) && !message.contains("hunter2"), "{message}");
    }
}
