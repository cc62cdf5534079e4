//! Secrets of the server, from a file of the data directory or from an environment variable.
//!
//! Both hold the secret as text, so that an operator can move it from the file to a variable, or give it to
//! another program that issues tokens.
//!
//! A missing file is created with mode 0600. Several processes may start at once: the file is written whole
//! under its name, or not at all, and the losers read the winner's secret. An existing file is never
//! replaced, since everything that it has signed or sealed would become useless. A file that other users can
//! read or that belongs to another user is an error.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use carrel_config::Environment;
use carrel_config::environment::{CARREL_CREDENTIAL_KEY, CARREL_TOKEN_SECRET};
use carrel_domain::{Code, Coded, Secret, hex};
use carrel_fsroot::{Collision, Durability, Metadata, Problem, Root, WriteOptions};

use super::random::random;
use super::signing_key::MIN_SECRET_BYTES;

/// The name of the file with the token secret.
pub const KEY_FILE: &str = "token.key";

/// A kind of secret: the variable and the file that can hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSecret {
    variable: &'static str,
    file: &'static str,
}

impl ServerSecret {
    /// The secret that signs tokens.
    pub const TOKENS: Self = Self { variable: CARREL_TOKEN_SECRET, file: KEY_FILE };

    /// The secret that seals credentials.
    pub const CREDENTIALS: Self = Self { variable: CARREL_CREDENTIAL_KEY, file: "credentials.key" };

    /// Returns the secret of the environment, or else that of the data directory, which is created if
    /// missing.
    pub fn load(self, environment: &Environment, data_dir: &Path) -> Result<Secret, KeyError> {
        match self.from_environment(environment)? {
            Some(secret) => Ok(secret),
            None => self.open_or_create(data_dir),
        }
    }
}

const MAX_KEY_FILE_BYTES: u64 = 4096;

const KEY_FILE_MODE: u32 = 0o600;

const OTHERS: u32 = 0o077;

/// The reason that there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or created.
    #[error("could not use the key in {}", directory.display())]
    File {
        /// The data directory.
        directory: PathBuf,
        /// The error of the file system.
        #[source]
        source: carrel_fsroot::Error,
    },
    /// Other users can read or write the file.
    #[error(
        "other users may use {} (mode {mode:03o}); run chmod 600 on it, or remove it if somebody may have read it",
        path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file belongs to another user, who can change it at any time.
    #[error("{} belongs to user {owner}, and this is user {user}", path.display())]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// The owner of the file.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// The secret is not text, or too short.
    #[error("{place} must hold a text of at least {MIN_SECRET_BYTES} bytes")]
    Unusable {
        /// The file or variable.
        place: String,
    },
}

impl Coded for KeyError {
    fn code(&self) -> Code {
        match self {
            Self::File { source, .. } => source.code(),
            Self::OpenToOthers { .. } | Self::ForeignOwner { .. } => Code::RootUnsafe,
            Self::Unusable { .. } => Code::RecordUnreadable,
        }
    }
}

/// Accepts a secret that is long enough, without surrounding white space.
pub(super) fn usable(bytes: &[u8], place: impl Into<String>) -> Result<Secret, KeyError> {
    str::from_utf8(bytes)
        .ok()
        .map(str::trim)
        .filter(|text| text.len() >= MIN_SECRET_BYTES)
        .map(Secret::new)
        .ok_or_else(|| KeyError::Unusable { place: place.into() })
}

impl ServerSecret {
    /// Returns the secret of the environment; `None` if the variable is unset or empty.
    pub fn from_environment(self, environment: &Environment) -> Result<Option<Secret>, KeyError> {
        match environment.get(self.variable).filter(|value| !value.is_empty()) {
            Some(value) => usable(value.as_encoded_bytes(), self.variable).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the secret of a data directory, creating it if missing.
    pub(super) fn open_or_create(self, directory: &Path) -> Result<Secret, KeyError> {
        let failed = |source| KeyError::File { directory: directory.to_owned(), source };
        let root = Root::open(directory).map_err(failed)?;
        let absent = |error: &KeyError| matches!(error, KeyError::File { source, .. } if source.is_not_found());
        match read(&root, self.file) {
            Err(error) if absent(&error) => {}
            known => return known,
        }
        match root.write(Path::new(self.file), new_secret().as_bytes(), NEW_KEY) {
            Err(error) if error.problem() == Problem::Exists => {
                // The process that created the file may not have synced the directory yet. A crash now must
                // not lose a secret that we are about to sign with.
                root.sync_directory(Path::new(".")).map_err(failed)?;
            }
            written => written.map_err(failed)?,
        }
        read(&root, self.file)
    }
}

const NEW_KEY: WriteOptions = WriteOptions {
    collision: Collision::Refuse,
    durability: Durability::Synced,
    new_mode: Some(KEY_FILE_MODE),
};

fn new_secret() -> String {
    format!("{}\n", hex::encode(&random::<32>()))
}

/// Reads the key file. The permissions are checked on the open descriptor.
fn read(root: &Root, name: &str) -> Result<Secret, KeyError> {
    let failed = |source| KeyError::File { directory: root.path().to_owned(), source };
    let path = root.path().join(name);
    let directory = root.directory(Path::new(".")).map_err(failed)?;
    let (file, metadata) = directory.open_file(Path::new(name)).map_err(failed)?;
    check(&path, &metadata, rustix::process::geteuid().as_raw())?;
    let mut bytes = Vec::new();
    let unusable = || KeyError::Unusable { place: path.display().to_string() };
    file.take(MAX_KEY_FILE_BYTES).read_to_end(&mut bytes).map_err(|_| unusable())?;
    usable(&bytes, path.display().to_string())
}

fn check(path: &Path, metadata: &Metadata, user: u32) -> Result<(), KeyError> {
    let path = path.to_owned();
    let (owner, mode) = (metadata.uid, metadata.mode);
    if owner != user {
        return Err(KeyError::ForeignOwner { path, owner, user });
    }
    if mode & OTHERS != 0 {
        return Err(KeyError::OpenToOthers { path, mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_fsroot::FileKind;

    #[test]
    fn a_key_of_another_user_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        ServerSecret::TOKENS.open_or_create(directory.path()).unwrap();
        let root = Root::open(directory.path()).unwrap();
        let metadata = root.metadata(Path::new(KEY_FILE)).unwrap();
        assert_eq!((metadata.kind, metadata.mode), (FileKind::File, 0o600));
        assert!(check(Path::new("k"), &metadata, metadata.uid).is_ok());
        let error = check(Path::new("k"), &metadata, metadata.uid + 1).unwrap_err();
        assert!(matches!(error, KeyError::ForeignOwner { .. }), "{error}");
    }

    #[test]
    fn a_secret_of_the_environment_is_text_of_some_length() {
        use std::os::unix::ffi::OsStrExt as _;
        let of = |bytes: &[u8]| {
            let value = std::ffi::OsStr::from_bytes(bytes).to_owned();
            ServerSecret::TOKENS
                .from_environment(&Environment::from_pairs([(CARREL_TOKEN_SECRET, value)]))
        };
        assert!(of(b"").unwrap().is_none());
        assert!(ServerSecret::TOKENS.from_environment(&Environment::default()).unwrap().is_none());
        assert_eq!(of(&[b'k'; 32]).unwrap(), Some(Secret::new("k".repeat(32))));
        for bytes in [&[b'k'; 31][..], &[0xff; 40], &[b' '; 64]] {
            let error = of(bytes).unwrap_err().to_string();
            assert_eq!(error, "CARREL_TOKEN_SECRET must hold a text of at least 32 bytes");
        }
    }
}
