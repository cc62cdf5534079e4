//! The hostile cases of the reference, by their numbers: each asserts what our system is to do.
//!
//! | case | test |
//! |---|---|
//! | H-01, H-02, H-07, H-08, H-10 | [`commands::what_a_command_starts_stays_behind_the_walls`] |
//! | H-03, H-04, H-05, H-06, H-09, H-11, H-12, H-13, H-14 | [`commands::what_is_not_allowed_is_refused_in_every_spelling`] |
//! | H-09, H-32, H-33, H-34 | [`commands::git_is_operations_and_words`] |
//! | H-13, H-19, H-20 | [`commands::no_command_reaches_a_server_of_this_machine`] |
//! | H-15, H-16, H-17, H-18, H-21, H-22 | [`commands::a_command_sees_its_own_workspace_and_nothing_else`] |
//! | H-24 | [`files::links_that_are_swapped_lead_nowhere`] |
//! | H-25, H-26, H-27, H-28, H-53, H-54 | [`files::one_policy_holds_for_every_way_to_a_file`] |
//! | H-29, H-40 | [`files::what_a_tenant_configures_runs_in_no_git_of_ours`] |
//! | H-30, H-31 | [`files::a_tenant_cannot_break_its_workspace_for_later`] |
//! | H-35, H-36, H-37, H-38, H-39, H-41 | [`files::repositories_come_from_addresses_that_were_taken_apart`] |
//! | H-42 | [`super::limits`], whole |
//! | H-43, H-44, H-45, H-46 | [`limits::nothing_outlives_its_time`] |
//! | H-47, H-48, H-49, H-64 | [`limits::a_quota_holds_while_it_is_used_up`] |
//! | H-50 | [`limits::files_are_counted`] |
//! | H-51 | [`limits::too_much_at_once_is_turned_away`] |
//! | H-52 | [`limits::what_is_too_large_is_refused_before_it_is_kept`] |
//! | H-55, H-56 | [`super::kill`], whole |
//! | H-57, H-69, H-71 | [`super::tasks::what_makes_no_sense_is_refused_by_name`], [`super::tasks::ids_are_the_same_in_either_case`] |
//! | H-58 | [`super::tasks::a_key_makes_a_submission_happen_once`], [`super::kill`] |
//! | H-59, H-60 | [`tasks::a_task_that_is_cancelled_in_its_last_step_is_cancelled`] |
//! | H-61, H-62 | [`tasks::the_end_of_a_task_is_heard_by_everybody`], [`super::streams`] |
//! | H-63 | unit test of the stream in `carrel-api`, with a clock of its own |
//! | H-64 | [`super::streams::a_task_that_is_over_quota_ends_with_a_terminal_event`] |
//! | H-65 | [`tasks::one_tenant_does_not_keep_another_waiting`] |
//! | H-66, H-67 | [`tasks::nobody_is_served_in_a_workspace_that_is_not_theirs`], [`super::auth`] |
//! | H-70 | [`super::streams::a_ticket_opens_the_stream_of_its_task_and_nothing_else`] |
//! | H-72 | [`tasks::a_pattern_is_a_regular_expression`] |
//! | H-73 | [`tasks::open_streams_take_nothing_from_others`] |
//! | H-75 | [`tasks::no_two_workers_have_one_name`] |

/// Commands, and what they may see and reach.
mod commands;
/// Files, repositories, and what a tenant leaves in them.
mod files;
/// Time, room and numbers.
mod limits;
/// Tasks, tenants and those who follow them.
mod tasks;

use std::os::unix::fs::PermissionsExt;

use super::test_environment::Service;

/// What nobody inside may ever print.
const CANARY: &str = "canary-5e1f";

/// Something outside that everybody of this machine may read.
fn canary(service: &Service) -> String {
    let path = service.test_env.path("outside");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let file = path.join("hostname");
    std::fs::write(&file, CANARY).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    path.display().to_string()
}
