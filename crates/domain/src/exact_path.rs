//! Lossless serialisation of paths: as text if they are UTF-8, as a list of bytes otherwise. For messages
//! between Carrel's own processes; use it as `#[serde(with = "carrel_domain::exact_path")]`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Exact {
    Text(String),
    Bytes(Vec<u8>),
}

/// Serialises a path as text, or as bytes if it is not UTF-8.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_bytes().serialize(serializer),
    }
}

/// Deserialises a path from text or bytes.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Exact::deserialize(deserializer)? {
        Exact::Text(text) => text.into(),
        Exact::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] PathBuf);

    #[test]
    fn any_path_survives_a_round_trip() {
        for bytes in [&b"/a b"[..], b"/\xff/x", b""] {
            let path = Holder(OsString::from_vec(bytes.to_vec()).into());
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), path, "{text}");
        }
    }
}
