//! A private key for SSH, as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::request::InvalidRequest;

/// The longest key. One of RSA with 16384 bits has 13 KB.
pub(super) const MAX_BYTES: usize = 16 << 10;

const FIELD: &str = "ssh_private_key";

/// What a key of OpenSSH's own form begins with, before the name of its cipher.
const OPENSSH: &[u8] = b"openssh-key-v1\0";

/// Refuses what the agent could not load: anything but one private key without a passphrase.
pub(super) fn check(key: &str) -> Result<(), InvalidRequest> {
    let refused = |rule: &str| Err(InvalidRequest::new(FIELD, rule));
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r');
    let Some((kind, body)) = parts(key).filter(|_| key.bytes().all(is_text)) else {
        return refused(
            "is one private key as ssh-keygen writes it, from `-----BEGIN … PRIVATE KEY-----` to the line of its end",
        );
    };
    let locked = match kind {
        "ENCRYPTED" => true,
        "OPENSSH" => is_locked(&body),
        _ => body.starts_with("Proc-Type:"),
    };
    match () {
        () if key.len() > MAX_BYTES => refused(&format!("has at most {MAX_BYTES} bytes")),
        () if !["", "OPENSSH", "RSA", "EC", "ENCRYPTED"].contains(&kind) => {
            refused("is an OpenSSH, RSA, EC or PKCS #8 private key")
        }
        () if locked => refused(
            "is locked with a passphrase, which nobody could type here; \
             take that off with `ssh-keygen -p -N ''`, or make a key for this purpose",
        ),
        () if STANDARD.decode(&body).is_err() => {
            refused("is damaged: what stands between its first and last line is not base64")
        }
        () => Ok(()),
    }
}

/// Returns a key with the ends of lines that ssh-add wants.
pub(super) fn normal(key: &str) -> String {
    key.trim().lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// Returns the kind of a key, and what stands between its first and last line.
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

/// Tells whether a key of OpenSSH's own form has a cipher.
fn is_locked(body: &str) -> bool {
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
    fn one_key_without_a_passphrase_is_taken() {
        let windows = openssh("none").replace('\n', "\r\n");
        for key in [openssh("none"), windows.clone(), pem("", "aHVudGVy"), pem("RSA ", "aHVudGVy")]
        {
            check(&key).unwrap();
        }
        assert_eq!(normal(windows.trim()), openssh("none"));
    }

    #[test]
    fn what_the_agent_could_not_load_is_refused_without_repeating_it() {
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
            let told = check(&key).unwrap_err().to_string();
            assert!(told.contains(rule) && told.contains(FIELD), "{told}");
            assert!(!told.contains("aHVu"), "{told}");
        }
    }
}
