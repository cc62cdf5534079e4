//! Serialisation of paths for people: bytes that are not UTF-8 are replaced by U+FFFD, so that no file name
//! can make a reply impossible. Use it as `#[serde(with = "carrel_domain::lossy_path")]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

/// Serialises a path as text, with a replacement character for each invalid sequence.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Deserialises a path from text. A replaced character stays replaced.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Shown(#[serde(with = "super")] std::path::PathBuf);

    #[test]
    fn a_path_that_is_not_text_is_shown_as_well_as_possible() {
        let json = serde_json::to_string(&Shown(OsStr::from_bytes(b"a\xff").into())).unwrap();
        assert_eq!(json, "\"a\u{fffd}\"");
        let shown: Shown = serde_json::from_str("\"/a/b\"").unwrap();
        assert_eq!(shown.0, std::path::Path::new("/a/b"));
    }
}
