use proptest::prelude::*;

use crate::forge::{authority, claims, encode, now, token};

proptest! {
    #[test]
    fn no_random_text_is_accepted(text in r"\PC{0,200}", parts in r"[A-Za-z0-9_-]{0,80}\.[A-Za-z0-9_-]{0,80}\.[A-Za-z0-9_-]{43}") {
        prop_assert!(authority().verify(&text, now()).is_err());
        prop_assert!(authority().verify(&parts, now()).is_err());
    }

    #[test]
    fn no_random_signature_is_accepted(signature in any::<[u8; 32]>()) {
        let good = token(&claims(""));
        let (signed, _) = good.rsplit_once('.').unwrap();
        let forged = format!("{signed}.{}", encode(signature));
        prop_assert!(authority().verify(&forged, now()).is_err());
    }

    #[test]
    fn no_token_with_a_changed_byte_is_accepted(at in any::<prop::sample::Index>(), byte in 0x20_u8..0x7f) {
        let good = token(&claims(""));
        let mut bytes = good.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let changed = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(authority().verify(&changed, now()).is_ok(), changed == good);
    }

    #[test]
    fn no_genuine_payload_makes_the_reader_panic(payload in any::<Vec<u8>>(), more in r"[ -~]{0,60}") {
        let _ = authority().verify(&token(&String::from_utf8_lossy(&payload)), now());
        let _ = authority().verify(&token(&claims(&more)), now());
    }
}
