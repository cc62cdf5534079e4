//! Where a secret of the server comes from: a file of the data directory, or a variable.
//!
//! Both hold the secret as text, so that what stands in the file can be moved to the variable, or
//! given to another program that makes tokens, and means the same there.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use carrel_config::Environment;
use carrel_config::environment::{CARREL_CREDENTIAL_KEY, CARREL_TOKEN_SECRET};
use carrel_domain::{Code, Coded, Secret, hex};
use carrel_fsroot::{Collision, Durability, Metadata, Problem, Root, WriteOptions};

use super::random::random;
use super::signing_key::MIN_SECRET_BYTES;

/// The file that holds the secret, in the data directory.
pub const KEY_FILE: &str = "token.key";

/// A secret of the server: the variable and the file that can hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSecret {
    variable: &'static str,
    file: &'static str,
}

impl ServerSecret {
    /// What signs tokens.
    pub const TOKENS: Self = Self { variable: CARREL_TOKEN_SECRET, file: KEY_FILE };

    /// What credentials are sealed with.
    pub const CREDENTIALS: Self = Self { variable: CARREL_CREDENTIAL_KEY, file: "credentials.key" };

    /// Takes the secret of the environment if there is one, or else that of the data directory, which
    /// gets one if it has none.
    pub fn load(self, environment: &Environment, data_dir: &Path) -> Result<Secret, KeyError> {
        match self.from_environment(environment)? {
            Some(secret) => Ok(secret),
            None => self.open_or_create(data_dir),
        }
    }
}

/// Bounds what is read of a file that is no key.
const MAX_KEY_FILE_BYTES: u64 = 4096;

/// The permissions of a new key: its owner's alone.
const KEY_FILE_MODE: u32 = 0o600;

/// The permissions that a key must not give.
const OTHERS: u32 = 0o077;

/// Why there is no secret to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("could not use the key in {}", directory.display())]
    File {
        /// The data directory.
        directory: PathBuf,
        /// What stands in the way.
        #[source]
        source: carrel_fsroot::Error,
    },
    /// WorkerProxy than its owner may use the file.
    #[error(
        "other users may use {} (mode {mode:03o}); run chmod 600 on it, or remove it if somebody may have read it",
        path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file belongs to somebody else, who can change it at any time.
    #[error("{} belongs to user {owner}, and this is user {user}", path.display())]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Authenticated we are.
        user: u32,
    },
    /// The secret is no text, or too short to be one.
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

/// Takes a secret that is long enough, without the space around it.
pub(super) fn usable(bytes: &[u8], place: impl Into<String>) -> Result<Secret, KeyError> {
    str::from_utf8(bytes)
        .ok()
        .map(str::trim)
        .filter(|text| text.len() >= MIN_SECRET_BYTES)
        .map(Secret::new)
        .ok_or_else(|| KeyError::Unusable { place: place.into() })
}

impl ServerSecret {
    /// Returns the secret of the environment, or none if the variable is not set or empty.
    pub fn from_environment(self, environment: &Environment) -> Result<Option<Secret>, KeyError> {
        match environment.get(self.variable).filter(|value| !value.is_empty()) {
            Some(value) => usable(value.as_encoded_bytes(), self.variable).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the secret of a data directory, and makes one if there is none.
    ///
    /// Of several processes that do so at once, one makes the file whole and the others take its secret.
    /// A file that is there is never replaced: whatever it signed or sealed would end.
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
                // Whoever made it may not have carried its name to the disk yet.
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

/// Reads the key file, having looked at the permissions of what is read.
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
    fn a_key_of_somebody_else_is_refused() {
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
