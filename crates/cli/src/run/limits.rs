//! The limits of an issue in one sentence, as `carrel check` and `carrel run` print them.

use carrel_config::{Budget, ConductorConfig};

/// Describes the limits of an issue.
pub(crate) fn describe(config: &ConductorConfig) -> String {
    let Budget { turns, tokens, minutes, attempts } = config.budgets.issue;
    let limits =
        [(turns, "turns"), (attempts, "attempts"), (minutes, "minutes"), (tokens, "tokens")];
    let limits = limits.into_iter().filter_map(|(limit, unit)| Some(format!("{} {unit}", limit?)));
    let limits: Vec<String> = limits.collect();
    let budget = match limits.as_slice() {
        [] => "no budget limits an issue".to_owned(),
        [only] => format!("an issue may take {only}"),
        [most @ .., last] => format!("an issue may take {} and {last}", most.join(", ")),
    };
    let progress = match config.agent.max_turns_without_progress {
        None => "turns without progress are not limited".to_owned(),
        Some(1) => "one turn without progress blocks it".to_owned(),
        Some(most) => format!("{most} turns without progress block it"),
    };
    format!("{budget}; {progress}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_config::{Environment, ValidationScope, Workflow};
    use std::path::Path;

    fn described(settings: &str) -> String {
        let text = format!("---\ntracker: {{kind: local}}\n{settings}\n---\n");
        let path = Path::new("/w/WORKFLOW.md");
        let scope = ValidationScope::Everything;
        let workflow = Workflow::parse(text.as_bytes(), path, &Environment::default(), scope);
        describe(&workflow.unwrap().config.conductor.unwrap())
    }

    #[test]
    fn limits_are_told_in_a_sentence() {
        assert_eq!(
            described(""),
            "an issue may take 100 turns, 20 attempts, 480 minutes and 10000000 tokens; \
             3 turns without progress block it"
        );
        assert_eq!(
            described(
                "agent: {max_turns_without_progress: 1}\nbudgets: {issue: {turns: 5, tokens: 0, minutes: 0, attempts: 0}}"
            ),
            "an issue may take 5 turns; one turn without progress blocks it"
        );
        assert_eq!(
            described(
                "agent: {max_turns_without_progress: 0}\nbudgets: {issue: {turns: 0, tokens: 0, minutes: 0, attempts: 0}}"
            ),
            "no budget limits an issue; turns without progress are not limited"
        );
    }
}
