use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use carrel_domain::{Code, Coded};
use carrel_workspace::{RootOptions, Severity, Workspaces, verify};

use crate::{open, options};

#[test]
fn a_missing_root_is_made_for_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let workspaces = open(&directory.path().join("a/b/root")).unwrap();
    for path in [workspaces.path().to_owned(), workspaces.path().join(".carrel")] {
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o700);
    }
}

#[test]
fn directories_of_the_system_are_never_roots() {
    for path in [
        "/",
        "/etc",
        "/etc/carrel",
        "/usr/local/ws",
        "/bin",
        "/sbin/x",
        "/lib",
        "/lib64/x",
        "/boot/ws",
        "/dev/shm/ws",
        "/proc/self",
        "/sys/x",
        "/var/../etc/ws",
    ] {
        let error = open(Path::new(path)).unwrap_err();
        assert_eq!(error.code(), Code::RootRefused, "{path}: {error}");
    }
    assert!(!Path::new("/etc/carrel").exists() && !Path::new("/usr/local/ws").exists());
}

#[test]
fn a_link_does_not_smuggle_in_a_directory_of_the_system() {
    let directory = tempfile::tempdir().unwrap();
    symlink("/etc", directory.path().join("link")).unwrap();
    for path in ["link", "link/carrel"] {
        let error = open(&directory.path().join(path)).unwrap_err();
        assert_eq!(error.code(), Code::RootRefused, "{path}");
    }
}

#[test]
fn home_itself_is_refused_and_a_directory_in_it_is_not() {
    let home = tempfile::tempdir().unwrap();
    let at_home = |root: &Path| {
        Workspaces::open_or_create(&RootOptions { home: Some(home.path().into()), ..options(root) })
    };
    assert_eq!(at_home(home.path()).unwrap_err().code(), Code::RootRefused);
    assert!(at_home(&home.path().join("carrel")).is_ok());
}

#[test]
fn a_repository_is_refused_and_a_directory_in_one_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(".git")).unwrap();
    assert_eq!(open(directory.path()).unwrap_err().code(), Code::RootRefused);
    let inside = directory.path().join("workspaces");
    open(&inside).unwrap();
    let findings = verify(&options(&inside)).unwrap();
    assert!(findings.iter().any(|finding| finding.check == "repository"), "{findings:?}");
}

#[test]
fn a_root_that_others_may_change_is_refused() {
    for mode in [0o777, 0o770, 0o722] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let error = open(directory.path()).unwrap_err();
        assert_eq!(error.code(), Code::RootUnsafe, "{mode:o}");
        let findings = verify(&options(directory.path())).unwrap();
        let found = findings.iter().find(|finding| finding.check == "permissions").unwrap();
        assert_eq!(found.severity, Severity::Error);
        assert!(found.fix.contains("chmod 700"), "{}", found.fix);
    }
}

#[test]
fn a_root_of_another_user_is_refused() {
    carrel_skip::needs!(Root);
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(12345), None).unwrap();
    assert_eq!(open(directory.path()).unwrap_err().code(), Code::RootUnsafe);
}

#[test]
fn a_file_is_not_a_root() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(open(&file).unwrap_err().code(), Code::NotADirectory);
    assert_eq!(open(&file.join("below")).unwrap_err().code(), Code::NotADirectory);
}

#[test]
fn looking_at_a_directory_does_not_change_it() {
    let directory = tempfile::tempdir().unwrap();
    assert!(Workspaces::open_existing(&options(directory.path())).unwrap().is_none());
    let missing = directory.path().join("missing");
    assert!(Workspaces::open_existing(&options(&missing)).unwrap().is_none());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn every_process_that_opens_a_root_reads_the_same_volume_id() {
    let directory = tempfile::tempdir().unwrap();
    let roots: Vec<_> = (0..8).map(|_| open(&directory.path().join("root")).unwrap()).collect();
    let volumes: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> =
            roots.iter().map(|root| scope.spawn(|| root.volume().unwrap())).collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert!(volumes.iter().all(|volume| *volume == volumes[0]), "{volumes:?}");
    assert_ne!(open(&directory.path().join("other")).unwrap().volume().unwrap(), volumes[0]);
    let file = roots[0].path().join(".carrel/volume");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", volumes[0]));
    std::fs::write(file, "not an id").unwrap();
    assert_eq!(roots[0].volume().unwrap_err().code(), Code::RecordUnreadable);
}
