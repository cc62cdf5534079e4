//! Channel binding (`tls-server-end-point`, RFC 5929), which ties a SCRAM password to its TLS connection: a
//! server in the middle cannot use the login on a connection of its own.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// The prefix of the object identifiers of RSA signatures.
const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];

/// The prefixes of ECDSA signatures, with SHA-2 and with SHA-1.
const CURVE_SHA2: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
const CURVE_SHA1: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Returns the hash of a certificate with the hash function of its signature. `None` for signatures without one,
/// such as Ed25519.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(SEQUENCE, certificate)?;
    let (_, rest) = element(SEQUENCE, whole)?;
    let (algorithm, _) = element(SEQUENCE, rest)?;
    let (identifier, _) = element(OBJECT_IDENTIFIER, algorithm)?;
    let (last, family) = identifier.split_last()?;
    Some(match (family, last) {
        // RFC 5929 replaces MD5 and SHA-1 by SHA-256.
        (family, 4 | 5 | 11) if family == RSA => Sha256::digest(certificate).to_vec(),
        (family, 12) if family == RSA => Sha384::digest(certificate).to_vec(),
        (family, 13) if family == RSA => Sha512::digest(certificate).to_vec(),
        (family, 2) if family == CURVE_SHA2 => Sha256::digest(certificate).to_vec(),
        (family, 3) if family == CURVE_SHA2 => Sha384::digest(certificate).to_vec(),
        (family, 4) if family == CURVE_SHA2 => Sha512::digest(certificate).to_vec(),
        _ if identifier == CURVE_SHA1 => Sha256::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// Splits a DER element with this tag into its content and the bytes after it.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let longer =
            |length: usize, digit: &u8| length.checked_mul(256)?.checked_add((*digit).into());
        (digits.iter().try_fold(0, longer)?, rest)
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}
