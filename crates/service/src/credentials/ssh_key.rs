//! The rules for private SSH keys in credentials.
//!
//! A key is loaded into an ssh-agent that can neither ask for a passphrase nor report an error to the
//! caller later, so that keys it could not load are refused when they are stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::request::InvalidRequest;

/// The longest key, in bytes. An RSA key of 16384 bits has 13 KB.
pub(super) const MAX_BYTES: usize = 16 << 10;

const FIELD: &str = "ssh_private_key";

/// The magic bytes of OpenSSH's own format, before the name of the cipher.
const OPENSSH: &[u8] = b"openssh-key-v1\0";

/// Accepts exactly one private key without a passphrase. The error contains nothing of the key.
pub(super) fn check(key: &str) -> Result<(), InvalidRequest> {
    let refused = |rule: &str| Err(InvalidRequest::new(FIELD, rule));
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r');
    let Some((kind, body)) = parts(key).filter(|_| key.bytes().all(is_text)) else {
        return refused(
            "is one private key as ssh-keygen writes it, from `-----BEGIN … PRIVATE KEY-----` to the line of its end",
        );
    };
    let encrypted = match kind {
        "ENCRYPTED" => true,
        "OPENSSH" => has_cipher(&body),
        _ => body.starts_with("Proc-Type:"),
    };
    if key.len() > MAX_BYTES {
        return refused(&format!("has at most {MAX_BYTES} bytes"));
    }
    if !["", "OPENSSH", "RSA", "EC", "ENCRYPTED"].contains(&kind) {
        return refused("is an OpenSSH, RSA, EC or PKCS #8 private key");
    }
    if encrypted {
        return refused(
            "is encrypted with a passphrase, which cannot be entered here; \
             remove it with `ssh-keygen -p -N ''`, or create a key for this purpose",
        );
    }
    if STANDARD.decode(&body).is_err() {
        return refused("is damaged: the text between its first and last line is not base64");
    }
    Ok(())
}

/// Returns a key with the line endings that ssh-add accepts.
pub(super) fn normalize(key: &str) -> String {
    key.trim().lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Returns the type of a PEM key and its base64 body without line breaks. `None` if the text is not
/// exactly one private key.
fn parts(key: &str) -> Option<(&str, String)> {
    fn kind<'a>(line: &'a str, word: &str) -> Option<&'a str> {
        Some(line.strip_prefix(word)?.strip_suffix("PRIVATE KEY-----")?.trim_end())
    }
    let lines: Vec<&str> = key.trim().lines().map(str::trim_end).collect();
    let [first, body @ .., last] = lines.as_slice() else { return None };
    let begun = kind(first, "-----BEGIN ")?;
    let is_one =
        kind(last, "-----END ")? == begun && !body.iter().any(|line| line.starts_with('-'));
    is_one.then(|| (begun, body.concat()))
}

/// Returns whether a key in OpenSSH's own format is encrypted.
fn has_cipher(body: &str) -> bool {
    let bytes = STANDARD.decode(body).unwrap_or_default();
    let cipher = bytes.strip_prefix(OPENSSH).and_then(|rest| rest.get(4..8));
    cipher.is_some_and(|cipher| cipher != b"none")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn pem(kind: &str, body: &str) -> String {
        format!("-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----\n")
    }

    fn openssh(cipher: &str) -> String {
        let length = u8::try_from(cipher.len()).unwrap();
        let bytes = [OPENSSH, &[0, 0, 0, length], cipher.as_bytes(), b"and more"].concat();
        pem("OPENSSH ", &STANDARD.encode(bytes))
    }

    #[test]
    fn one_key_without_a_passphrase_is_accepted() {
        let windows = openssh("none").replace('\n', "\r\n");
        for key in [openssh("none"), windows.clone(), pem("", "aHVudGVy"), pem("RSA ", "aHVudGVy")]
        {
            check(&key).unwrap();
        }
        assert_eq!(normalize(windows.trim()), openssh("none"));
    }

    #[test]
    fn keys_that_the_agent_could_not_load_are_refused_without_repeating_them() {
        let two = openssh("none").repeat(2);
        for (key, rule) in [
            (openssh("aes256-ctr"), "passphrase"),
            (pem("ENCRYPTED ", "aHVudGVy"), "passphrase"),
            (
                pem("RSA ", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\naHVudGVy"),
                "passphrase",
            ),
            (pem("OPENSSH ", "aHVudGVy!"), "damaged"),
            (pem("PGP ", "aHVudGVy"), "PKCS #8"),
            (String::new(), "ssh-keygen"),
            ("ssh-ed25519 aHVudGVy ann".to_owned(), "ssh-keygen"),
            (openssh("none").replace("END OPENSSH", "END RSA"), "ssh-keygen"),
            (two, "ssh-keygen"),
            (pem("", "aHVu\0dGVy"), "ssh-keygen"),
            (pem("", &"aHVudGVy\n".repeat(MAX_BYTES / 8)), "at most"),
        ] {
            let error = check(&key).unwrap_err().to_string();
            assert!(error.contains(rule) && error.contains(FIELD), "{error}");
            assert!(!error.contains("aHVu"), "{error}");
        }
    }
}
