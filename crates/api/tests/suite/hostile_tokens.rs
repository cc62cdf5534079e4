use carrel_api::auth::{Authority, Caller, Coverage, MAX_TOKEN_BYTES, RejectReason};
use carrel_domain::{Coded as _, ErrorEnvelope, Timestamp, TokenScope, TokenScopes};
use pretty_assertions::assert_eq;

use crate::forge::{
    NOW, OTHER, SECRET, WORKSPACE, authority, claims, encode, expecting, now, token, token_of,
};

fn reason(authority: &Authority, token: &str) -> Option<RejectReason> {
    let error = authority.verify(token, now()).err()?;
    assert_eq!(error.code().status(), 401);
    let told = serde_json::to_string(&ErrorEnvelope::of(&error)).unwrap();
    // Shorter texts may be words of the message.
    assert!(token.len() < 32 || !format!("{told}{error:?}").contains(token));
    error.reason()
}

fn read_only(coverage: Coverage) -> Caller {
    let expires_at = Timestamp::from_millis((NOW + 60) * 1000);
    Caller { subject: None, coverage, scopes: TokenScopes::of(&[TokenScope::Read]), expires_at }
}

#[test]
fn a_plain_token_is_accepted() {
    let caller = authority().verify(&token(&claims("")), now());
    assert_eq!(caller, Ok(read_only(Coverage::one(WORKSPACE.parse().unwrap()))));
}

#[test]
fn an_algorithm_or_key_of_the_tokens_own_choice_is_refused() {
    use RejectReason::{Malformed, Signature};
    for (header, expected) in [
        (r#"{"alg":"none"}"#, Signature),
        (r#"{"alg":"None"}"#, Signature),
        (r#"{"alg":"","typ":"JWT"}"#, Signature),
        (r#"{"alg":"hs256"}"#, Signature),
        (r#"{"alg":"HS256 "}"#, Signature),
        (r#"{"alg":"HS384"}"#, Signature),
        (r#"{"alg":"HS512"}"#, Signature),
        (r#"{"alg":"RS256","typ":"JWT"}"#, Signature),
        (r#"{"alg":"ES256","typ":"JWT"}"#, Signature),
        (r#"{"alg":null}"#, Malformed),
        (r#"{"alg":["HS256"]}"#, Malformed),
        (r#"{"alg":"none","alg":"HS256"}"#, Malformed),
        (r#"{"alg":"HS256","alg":"HS256"}"#, Malformed),
        (r#"{"alg":"HS256","kid":"../../../../dev/null"}"#, Malformed),
        (r#"{"alg":"HS256","kid":"' UNION SELECT 'x"}"#, Malformed),
        (r#"{"alg":"HS256","jku":"https://evil.example/keys"}"#, Malformed),
        (r#"{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}"#, Malformed),
        (r#"{"alg":"HS256","crit":["exp"]}"#, Malformed),
        (r#"{"alg":"HS256","zip":"DEF"}"#, Malformed),
        (r#"{"alg":"HS256","typ":"dpop+jwt"}"#, Malformed),
        (r#"["HS256","JWT"]"#, Malformed),
        (r#"{"typ":"JWT"}"#, Malformed),
        ("{}", Malformed),
        ("", Malformed),
        ("\u{feff}{\"alg\":\"HS256\"}", Malformed),
    ] {
        let token = token_of(SECRET, header, &claims(""));
        assert_eq!(reason(&authority(), &token), Some(expected), "{header}");
    }
    for header in [r#"{"alg":"HS256"}"#, r#"{"typ":"jwt","alg":"HS256"}"#] {
        assert_eq!(reason(&authority(), &token_of(SECRET, header, &claims(""))), None, "{header}");
    }
}

#[test]
fn a_wrong_signature_is_refused() {
    let good = token(&claims(""));
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let unsigned = format!("{}.{}.", encode(r#"{"alg":"none"}"#), encode(claims("")));
    for (forged, expected) in [
        (
            token_of("another secret of thirty-two bytes", r#"{"alg":"HS256"}"#, &claims("")),
            RejectReason::Signature,
        ),
        (token_of("", r#"{"alg":"HS256"}"#, &claims("")), RejectReason::Signature),
        (format!("{signed}."), RejectReason::Signature),
        (format!("{signed}.{}", encode([0; 32])), RejectReason::Signature),
        (format!("{signed}.{}", &signature[..signature.len() - 3]), RejectReason::Signature),
        (format!("{signed}.{signature}="), RejectReason::Malformed),
        (format!("{signed}./{}", &signature[1..]), RejectReason::Malformed),
        (unsigned, RejectReason::Signature),
    ] {
        assert_eq!(reason(&authority(), &forged), Some(expected), "{forged}");
    }
}

#[test]
fn what_is_no_token_is_refused() {
    let good = token(&claims(""));
    let huge = token(&claims(&format!(r#""x":"{}""#, "x".repeat(MAX_TOKEN_BYTES))));
    for text in [
        "",
        ".",
        "..",
        "...",
        "a",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "ä.ö.ü",
        "null",
        "{}",
        &good.replacen('.', "", 1),
        &format!("{good}."),
        &format!(".{good}"),
        &format!("{good}.a"),
        &format!(" {good}"),
        &format!("{good}\n"),
        &format!("{good}\0"),
        &huge,
        &"a.".repeat(1 << 20),
        &"[".repeat(MAX_TOKEN_BYTES),
    ] {
        let expected = Some(RejectReason::Malformed);
        assert_eq!(reason(&authority(), text), expected, "{:.80}", text);
    }
    for length in 0..good.len() {
        assert!(authority().verify(&good[..length], now()).is_err(), "{length}");
    }
}

#[test]
fn times_are_kept() {
    let exp = |at: &str| format!(r#"{{"exp":{at},"workspace_id":"{WORKSPACE}","scope":"read"}}"#);
    let later = |seconds: i64| (NOW + seconds).to_string();
    for (payload, expected) in [
        (exp(&later(1)), None),
        (exp(&format!("{}.5", NOW + 1)), None),
        (exp(&later(0)), Some(RejectReason::Expired)),
        (exp(&later(-1)), Some(RejectReason::Expired)),
        (exp("0"), Some(RejectReason::Expired)),
        (exp("-1"), Some(RejectReason::Claims)),
        (exp("1e300"), Some(RejectReason::Claims)),
        (exp("1e999"), Some(RejectReason::Claims)),
        (exp("18446744073709551615"), Some(RejectReason::Claims)),
        (exp("null"), Some(RejectReason::Claims)),
        (exp(&format!("\"{}\"", later(60))), Some(RejectReason::Claims)),
        (exp("true"), Some(RejectReason::Claims)),
        (format!(r#"{{"workspace_id":"{WORKSPACE}","scope":"read"}}"#), Some(RejectReason::Claims)),
        (claims(&format!(r#""nbf":{}"#, later(60))), None),
        (claims(&format!(r#""nbf":{}"#, later(61))), Some(RejectReason::Claims)),
        (claims(&format!(r#""iat":{}"#, later(60))), None),
        (claims(&format!(r#""iat":{}"#, later(61))), Some(RejectReason::Claims)),
        (claims(r#""nbf":"soon""#), Some(RejectReason::Claims)),
    ] {
        assert_eq!(reason(&authority(), &token(&payload)), expected, "{payload}");
    }
}

#[test]
fn audience_and_issuer_are_pinned_when_they_are_configured() {
    let (aud, iss) = (r#""aud":"carrel""#, r#""iss":"https://id.example""#);
    for (more, expected) in [
        (format!("{aud},{iss}"), None),
        (format!(r#""aud":["other","carrel"],{iss}"#), None),
        (iss.to_owned(), Some(RejectReason::Audience)),
        (format!(r#""aud":"other",{iss}"#), Some(RejectReason::Audience)),
        (format!(r#""aud":"CARREL",{iss}"#), Some(RejectReason::Audience)),
        (format!(r#""aud":"carrel,other",{iss}"#), Some(RejectReason::Audience)),
        (format!(r#""aud":[],{iss}"#), Some(RejectReason::Audience)),
        (format!(r#""aud":{{"carrel":1}},{iss}"#), Some(RejectReason::Claims)),
        (aud.to_owned(), Some(RejectReason::Issuer)),
        (format!(r#"{aud},"iss":"https://id.example/""#), Some(RejectReason::Issuer)),
        (format!(r#"{aud},"iss":["https://id.example"]"#), Some(RejectReason::Claims)),
    ] {
        assert_eq!(reason(&expecting(), &token(&claims(&more))), expected, "{more}");
    }
}

#[test]
fn without_a_pin_a_token_for_another_audience_is_still_refused() {
    assert_eq!(
        reason(&authority(), &token(&claims(r#""aud":"other-app""#))),
        Some(RejectReason::Audience)
    );
    assert_eq!(reason(&authority(), &token(&claims(r#""iss":"anyone""#))), None);
}

#[test]
fn claims_that_say_two_things_or_nonsense_are_refused() {
    for more in [
        format!(r#""workspace_id":"{OTHER}""#),
        format!(r#""workspace_id":"{WORKSPACE}""#),
        r#""scope":"admin""#.to_owned(),
        format!(r#""exp":{}"#, NOW + 9999),
        r#""workspaces":["*"]"#.to_owned(),
        r#""workspaces":"**""#.to_owned(),
        format!(r#""workspaces":"{OTHER}""#),
        format!(r#""workspaces":["{OTHER}",""]"#),
        r#""workspaces":["../x"]"#.to_owned(),
        r#""workspaces":[1]"#.to_owned(),
        r#""workspaces":{"*":true}"#.to_owned(),
        r#""workspaces":"*","workspaces":"*""#.to_owned(),
        r#""sub":7"#.to_owned(),
        r#""sub":"a\nb""#.to_owned(),
        format!(r#""sub":"{}""#, "s".repeat(257)),
    ] {
        assert_eq!(
            reason(&authority(), &token(&claims(&more))),
            Some(RejectReason::Claims),
            "{more}"
        );
    }
}

#[test]
fn unknown_scopes_are_refused_and_no_scope_allows_nothing() {
    let with = |scope: &str| {
        token(&format!(r#"{{"exp":{},"workspace_id":"{WORKSPACE}"{scope}}}"#, NOW + 60))
    };
    for scope in [
        r#","scope":"read root""#,
        r#","scope":"READ""#,
        r#","scope":"*""#,
        r#","scope":["read","root"]"#,
        r#","scope":["read write"]"#,
        r#","scope":[""]"#,
        r#","scope":5"#,
        r#","scope":{"admin":true}"#,
    ] {
        assert_eq!(reason(&authority(), &with(scope)), Some(RejectReason::Claims), "{scope}");
    }
    let scopes = |scope: &str| authority().verify(&with(scope), now()).unwrap().scopes;
    for scope in ["", r#","scope":"""#, r#","scope":[]"#, r#","scope":null"#] {
        assert_eq!(scopes(scope), TokenScopes::NONE, "{scope}");
    }
    let two = TokenScopes::of(&[TokenScope::Read, TokenScope::Net]);
    for scope in [r#","scope":"read net""#, r#","scope":"net,read""#, r#","scope":["net","read"]"#]
    {
        assert_eq!(scopes(scope), two, "{scope}");
    }
}

#[test]
fn workspaces_are_read_from_both_claims_in_either_case() {
    let coverage = |workspaces: &str| {
        let exp = NOW + 60;
        let payload = format!(r#"{{"exp":{exp},"scope":"read"{workspaces}}}"#);
        authority().verify(&token(&payload), now()).map(|caller| caller.coverage)
    };
    let (one, other) = (WORKSPACE.parse().unwrap(), OTHER.parse().unwrap());
    let upper = WORKSPACE.to_uppercase();
    let both = Coverage::Only([one, other].into());
    for (workspaces, expected) in [
        (format!(r#","workspace_id":"{upper}""#), Coverage::one(one)),
        (format!(r#","workspaces":["{upper}","{WORKSPACE}"]"#), Coverage::one(one)),
        (format!(r#","workspaces":["{WORKSPACE}","{OTHER}"]"#), both.clone()),
        (format!(r#","workspaces":["{OTHER}"],"workspace_id":"{upper}""#), both),
        (r#","workspaces":"*""#.to_owned(), Coverage::All),
        (format!(r#","workspaces":"*","workspace_id":"{WORKSPACE}""#), Coverage::All),
    ] {
        assert_eq!(coverage(&workspaces), Ok(expected), "{workspaces}");
    }
    for workspaces in [
        "",
        r#","workspaces":[]"#,
        r#","workspace_id":"""#,
        r#","workspace_id":"*""#,
        r#","workspace_id":"0198c0de7a11700080000000000000001""#,
        r#","workspaces":"*","workspace_id":"x""#,
    ] {
        assert!(coverage(workspaces).is_err(), "{workspaces}");
    }
}
