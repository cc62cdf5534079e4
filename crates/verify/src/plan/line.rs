//! Plans for a test command that a caller gives as a line for the shell.

use crate::plan::{Invocation, TEST_VARIABLES, command_line};
use crate::profile::{Ecosystem, OptionPassing, Profile, ProjectCommand, args, words};
use crate::tool::ProjectTool;

/// The file of the evidence of a profile that no file describes.
const NO_FILE: &str = "command line";

/// Plans a line for bash that runs tests, in the top directory. A line that is a plain call of a known runner writes
/// that runner's report; of any other the output is read for the summary of one.
pub fn plan_test_line(line: &str) -> Invocation {
    let profile = Profile::new(Ecosystem::Custom, ".", NO_FILE);
    let known = plain_words(line).and_then(|argv| Some((ProjectTool::recognise(&argv)?, argv)));
    let command = if let Some((tool, argv)) = known {
        ProjectCommand::new(tool, ".", argv)
    } else {
        let argv = args(&["bash", "-c", "--", line]);
        let command = ProjectCommand::new(ProjectTool::Other, ".", argv);
        ProjectCommand { injection: OptionPassing::Impossible, ..command }
    };
    let line = command_line::CommandLine::for_project(&command);
    let mut invocation = command_line::invocation(&profile, &command, line);
    let variables = TEST_VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
    invocation.environment.extend(variables);
    invocation
}

/// Returns the words of a line that means the same without a shell; none of any other.
fn plain_words(line: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./:,+@%".contains(c);
    let words = words(line);
    (line.chars().all(is_plain) && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ReportFormat;

    #[test]
    fn a_plain_call_of_a_runner_writes_its_report_and_a_script_does_not() {
        let plain = plan_test_line("pytest -q tests");
        assert_eq!(plain.report, ReportFormat::Pytest);
        assert_eq!(plain.argv[..3], args(&["pytest", "-q", "tests"]));
        for line in
            ["cd x && pytest", "FOO=1 pytest", "pytest 'a b'", "./check.sh", "pytest | tee log"]
        {
            let planned = plan_test_line(line);
            assert_eq!(planned.argv, args(&["bash", "-c", "--", line]));
            assert_eq!(planned.report, ReportFormat::Text, "{line}");
        }
    }
}
