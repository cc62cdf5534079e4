use std::collections::BTreeSet;
use std::time::Duration;

use carrel_api::auth::{
    AuthError, Caller, ConsoleLink, Coverage, Grant, GrantError, PresentedToken, RejectReason,
    Transport, begin_session,
};
use carrel_domain::{Secret, TaskId, Timestamp, TokenScope, TokenScopes, WorkspaceId};
use pretty_assertions::assert_eq;

use crate::forge::{NOW, OTHER, WORKSPACE, authority, expecting, now};

const HOUR: Duration = Duration::from_hours(1);

fn workspace(text: &str) -> WorkspaceId {
    text.parse().unwrap()
}

#[test]
fn what_is_granted_is_what_is_accepted() {
    let both = Coverage::Only([workspace(WORKSPACE), workspace(OTHER)].into());
    for coverage in [Coverage::All, Coverage::one(workspace(OTHER)), both] {
        let scopes = TokenScopes::of(&[TokenScope::Net, TokenScope::Read]);
        let grant = Grant {
            subject: Some("ci of Zoë".to_owned()),
            scopes,
            ..Grant::new(coverage.clone(), HOUR)
        };
        let token = expecting().issue(&grant, now()).unwrap();
        let expires_at = Timestamp::from_millis((NOW + 3600) * 1000);
        let caller = Caller { subject: grant.subject, coverage, scopes, expires_at };
        assert_eq!(expecting().verify(token.expose(), now()), Ok(caller));
        let end = expecting().verify(token.expose(), expires_at).unwrap_err();
        assert_eq!(end.reason(), Some(RejectReason::Expired));
    }
    assert_eq!(Grant::new(Coverage::All, HOUR).scopes.to_string(), "read,write,exec");
}

#[test]
fn a_grant_may_name_another_audience_or_issuer_which_is_then_not_accepted_here() {
    let grant = Grant::new(Coverage::All, HOUR);
    let audience = Grant { audience: Some("other".to_owned()), ..grant.clone() };
    let issuer = Grant { issuer: Some("other".to_owned()), ..grant };
    for (grant, reason) in [(audience, RejectReason::Audience), (issuer, RejectReason::Issuer)] {
        let token = expecting().issue(&grant, now()).unwrap();
        let error = expecting().verify(token.expose(), now()).unwrap_err();
        assert_eq!(error.reason(), Some(reason));
    }
}

#[test]
fn a_token_that_would_never_be_accepted_is_not_made() {
    let grant = Grant::new(Coverage::All, HOUR);
    let many: BTreeSet<_> = (0..200).map(|_| WorkspaceId::generate()).collect();
    for (grant, expected) in [
        (
            Grant { coverage: Coverage::Only(BTreeSet::new()), ..grant.clone() },
            GrantError::NoWorkspace,
        ),
        (Grant { coverage: Coverage::Only(many), ..grant.clone() }, GrantError::TooLong),
        (Grant { scopes: TokenScopes::NONE, ..grant.clone() }, GrantError::NoScope),
        (Grant { ttl: Duration::from_millis(999), ..grant.clone() }, GrantError::NoTime),
        (Grant { subject: Some("a\nb".to_owned()), ..grant.clone() }, GrantError::Subject),
    ] {
        assert_eq!(authority().issue(&grant, now()), Err(expected));
    }
    let second = Grant { ttl: Duration::from_secs(1), ..grant };
    let late = Timestamp::from_millis(NOW * 1000 + 999);
    let token = authority().issue(&second, late).unwrap();
    assert!(authority().verify(token.expose(), late).is_ok());
}

#[test]
fn a_very_long_lifetime_ends_with_the_calendar() {
    let token = authority().issue(&Grant::new(Coverage::All, Duration::MAX), now()).unwrap();
    assert!(authority().verify(token.expose(), now()).is_ok());
}

#[test]
fn the_link_leads_to_a_session_that_the_browser_sends_back() {
    let (link, printed) = ConsoleLink::new(now());
    let caller = link.redeem(printed.expose(), now()).unwrap();
    let token = expecting().issue(&Grant::session(&caller), now()).unwrap();
    let cookie = begin_session(&token, Transport::Loopback);
    let sent = cookie.expose().split(';').next().unwrap();
    let presented = PresentedToken::find([], [sent]).unwrap();
    assert_eq!(presented, PresentedToken::Cookie(token.expose()));
    assert_eq!(expecting().verify(presented.token(), now()), Ok(caller));
}

#[test]
fn tickets_and_tokens_do_not_pass_for_each_other() {
    let (task, workspace) = (TaskId::generate(), workspace(WORKSPACE));
    let ticket = authority().tickets().issue(task, workspace, now());
    assert_eq!(authority().tickets().verify(ticket.expose(), task, now()), Ok(workspace));
    assert!(authority().verify(ticket.expose(), now()).is_err());
    let token = authority().issue(&Grant::new(Coverage::All, HOUR), now()).unwrap();
    assert!(authority().tickets().verify(token.expose(), task, now()).is_err());
    let link = ConsoleLink::new(now()).0;
    assert_eq!(link.redeem(token.expose(), now()), None);
}

#[test]
fn a_token_for_one_workspace_is_forbidden_in_another() {
    let grant =
        Grant { scopes: TokenScopes::ALL, ..Grant::new(Coverage::one(workspace(WORKSPACE)), HOUR) };
    let token: Secret = authority().issue(&grant, now()).unwrap();
    let caller = authority().verify(token.expose(), now()).unwrap();
    let refused = Err(AuthError::ForeignWorkspace { workspace: workspace(OTHER) });
    assert_eq!(caller.workspace(Some(workspace(OTHER))), refused);
    assert_eq!(
        caller.workspace(Some(WORKSPACE.to_uppercase().parse().unwrap())),
        Ok(workspace(WORKSPACE))
    );
}
