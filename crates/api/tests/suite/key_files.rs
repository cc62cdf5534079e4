use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use carrel_api::auth::{Authority, Coverage, Grant, KEY_FILE, KeyError};
use carrel_config::Environment;
use carrel_config::environment::CARREL_TOKEN_SECRET;
use carrel_domain::{Code, Coded as _, Secret};
use pretty_assertions::assert_eq;

use crate::forge::{SECRET, now};

fn token(authority: &Authority) -> Secret {
    authority.issue(&Grant::new(Coverage::All, Duration::from_hours(1)), now()).unwrap()
}

fn believes(authority: &Authority, token: &Secret) -> bool {
    authority.verify(token.expose(), now()).is_ok()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_new_directory_gets_a_key_that_stays() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(KEY_FILE);
    let first = token(&Authority::open_or_create(directory.path()).unwrap());
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(mode(&file), 0o600);
    assert_eq!(text.trim_end().len(), 64);
    assert!(text.trim_end().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(believes(&Authority::open_or_create(directory.path()).unwrap(), &first));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn every_directory_has_its_own_key() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = token(&Authority::open_or_create(one.path()).unwrap());
    assert!(!believes(&Authority::open_or_create(other.path()).unwrap(), &first));
}

#[test]
fn processes_that_start_at_once_agree_on_one_key() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let barrier = Barrier::new(8);
        let start = || {
            barrier.wait();
            Authority::open_or_create(directory.path()).unwrap()
        };
        let authorities: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let first = token(&authorities[0]);
        assert!(authorities.iter().all(|authority| believes(authority, &first)));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_key_that_others_may_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(KEY_FILE);
    Authority::open_or_create(directory.path()).unwrap();
    for open in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666] {
        set_mode(&file, open);
        let error = Authority::open_or_create(directory.path()).unwrap_err();
        assert!(matches!(error, KeyError::OpenToOthers { mode, .. } if mode == open), "{error}");
        assert_eq!(error.code(), Code::RootUnsafe);
    }
    for closed in [0o600, 0o400] {
        set_mode(&file, closed);
        assert!(Authority::open_or_create(directory.path()).is_ok(), "{closed:o}");
    }
}

#[test]
fn a_link_or_another_thing_under_its_name_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(KEY_FILE);
    let real = directory.path().join("real.key");
    fs::write(&real, SECRET).unwrap();
    set_mode(&real, 0o600);
    for target in ["real.key", "missing.key", "/dev/zero"] {
        symlink(target, &file).unwrap();
        assert!(Authority::open_or_create(directory.path()).is_err(), "{target}");
        assert_eq!(fs::read_link(&file).unwrap(), Path::new(target));
        fs::remove_file(&file).unwrap();
    }
    assert!(!directory.path().join("missing.key").exists());
    fs::create_dir(&file).unwrap();
    assert!(Authority::open_or_create(directory.path()).is_err());
    assert!(Authority::open_or_create(&directory.path().join("nowhere")).is_err());
}

#[test]
fn a_damaged_key_is_refused_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(KEY_FILE);
    for content in [&b""[..], b"\n", b"short", &[0xff; 64], &[b' '; 64]] {
        fs::write(&file, content).unwrap();
        set_mode(&file, 0o600);
        let error = Authority::open_or_create(directory.path()).unwrap_err();
        assert!(matches!(error, KeyError::Unusable { .. }), "{error}");
        assert_eq!(fs::read(&file).unwrap(), content);
    }
}

#[test]
fn a_secret_means_the_same_in_the_file_and_in_the_variable() {
    let directory = tempfile::tempdir().unwrap();
    let of_file = Authority::load(&Environment::default(), directory.path()).unwrap();
    let text = fs::read_to_string(directory.path().join(KEY_FILE)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let environment = Environment::from_pairs([(CARREL_TOKEN_SECRET, text.trim())]);
    let of_variable = Authority::load(&environment, elsewhere.path()).unwrap();
    assert!(believes(&of_variable, &token(&of_file)));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "no key is made");
}

#[test]
fn a_short_secret_is_refused_and_no_secret_is_printed() {
    assert!(Authority::from_secret(&Secret::new("x".repeat(31))).is_err());
    let authority = Authority::from_secret(&Secret::new(SECRET)).unwrap();
    assert!(!format!("{authority:?}").contains("secret"));
    let environment = Environment::from_pairs([(CARREL_TOKEN_SECRET, "too-short-a-secret")]);
    let directory = tempfile::tempdir().unwrap();
    let error = Authority::load(&environment, directory.path()).unwrap_err();
    assert!(!error.to_string().contains("too-short"), "{error}");
}
