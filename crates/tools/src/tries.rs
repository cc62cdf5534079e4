//! Tries: candidates in forks of a workspace, run, verified, ranked, and the best promoted.
//!
//! | step | record before it | after a crash, the next process |
//! |---|---|---|
//! | make the forks | their names | removes what there is of them and makes new ones |
//! | snapshot the fork, run the candidate | `running` | throws the fork away and begins anew, at most three times |
//! | snapshot its work, measure the diff | the same | the same |
//! | verify, score | `ran` | brings the fork to the snapshot of its work, and verifies that |
//! | rank, decide | `judged` | ranks again, with the same result |
//! | promote | `promoting` | finishes the promotion, or begins it if nothing was moved yet |
//!
//! The types of the record and the order among candidates are the crate `trial`; the files of a try are those of
//! [`carrel_workspace::Tries`]. Forks are made by a [`TryHost`]: those of the command line live in the root alone, and
//! those of the service have rows in its store.
//!
//! What a verification changes does not count: afterwards the fork is brought to the snapshot that was taken after the
//! run. What ignore rules exclude stays, such as build output.

mod candidate_work;
mod comparison;
mod difference;
mod fault_point;
mod forks_of_try;
mod host;
mod judge;
mod local_host;
mod open_fork;
mod promotion;
mod run;
mod session;
mod store;
mod tool;

pub use comparison::comparison;
pub use host::{OpenFork, TryHost};
pub use local_host::LocalHost;
pub use run::network_of;
pub use session::TrySession;
pub use store::{NewTry, TryRunner};

pub(crate) use store::forks_in_work;
pub(crate) use tool::register;
