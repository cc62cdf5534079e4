//! A certificate authority for tests, made with openssl. Certificates are valid for two days and are made for
//! each test, so that no key is in the repository and none expires there.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::process::{command, program};

const CURVE: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
const RSA: [&str; 2] = ["-newkey", "rsa:2048"];

/// A certificate authority, deleted when it is dropped. No system trusts it.
#[derive(Debug)]
pub struct TestAuthority(TempDir);

impl TestAuthority {
    /// Creates an authority with a P-256 key.
    #[expect(clippy::new_without_default, reason = "it has openssl make keys")]
    pub fn new() -> Self {
        Self::with_key(&CURVE)
    }

    /// Creates an authority with an RSA key.
    pub fn with_rsa() -> Self {
        Self::with_key(&RSA)
    }

    fn with_key(key: &[&str]) -> Self {
        let this = Self(tempfile::Builder::new().prefix("carrel-ca-").tempdir().unwrap());
        let extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"];
        request(this.0.path(), "authority", "sha256", &extensions, key);
        this
    }

    /// Returns the path of its certificate.
    pub fn certificate(&self) -> PathBuf {
        self.0.path().join("authority.pem")
    }

    /// Writes `server.pem` and `server.key` for a host, signed with a hash function.
    pub(super) fn issue(&self, host: &str, hash: &str, directory: &Path) {
        let name = format!("subjectAltName=DNS:{host}");
        let (certificate, key) = (self.certificate(), self.0.path().join("authority.key"));
        let by =
            [&CURVE[..], &["-CA", certificate.to_str().unwrap(), "-CAkey", key.to_str().unwrap()]]
                .concat();
        request(directory, "server", hash, &[&name, "basicConstraints=critical,CA:FALSE"], &by);
    }
}

fn request(directory: &Path, name: &str, hash: &str, extensions: &[&str], more: &[&str]) {
    let mut openssl = command(&program("openssl", "/usr/lib/ssl"), None);
    openssl.args([
        "req",
        "-x509",
        "-nodes",
        "-days",
        "2",
        &format!("-{hash}"),
        "-subj",
        &format!("/CN={name}"),
    ]);
    openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
    openssl.args(more);
    for extension in extensions {
        openssl.args(["-addext", extension]);
    }
    assert!(openssl.current_dir(directory).status().unwrap().success(), "openssl failed");
}
