//! The options that make a tool write a machine-readable report, and the place of the report.

use crate::plan::{Artifact, ReportFormat};

#[derive(Clone, Copy, Debug)]
enum ReportDestination {
    Printed,
    File(&'static str),
    Project(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportOptions {
    pub(super) format: ReportFormat,
    /// Arguments, separated by spaces.
    pub(super) options: &'static str,
    destination: ReportDestination,
}

impl ReportOptions {
    pub(crate) const TEXT: Self = Self::printed(ReportFormat::Text, "");

    /// A report on the output streams.
    pub(crate) const fn printed(format: ReportFormat, options: &'static str) -> Self {
        Self { format, options, destination: ReportDestination::Printed }
    }

    /// A report in a file of the artifact directory.
    pub(crate) const fn file(
        format: ReportFormat,
        name: &'static str,
        options: &'static str,
    ) -> Self {
        Self { format, options, destination: ReportDestination::File(name) }
    }

    /// `JUnit` reports in files of the project that match a pattern.
    pub(crate) const fn project(pattern: &'static str, options: &'static str) -> Self {
        let destination = ReportDestination::Project(pattern);
        Self { format: ReportFormat::Junit, options, destination }
    }

    pub(super) fn artifact(self) -> Option<Artifact> {
        match self.destination {
            ReportDestination::Printed => None,
            ReportDestination::File(name) => Some(Artifact::Private { name: name.to_owned() }),
            ReportDestination::Project(pattern) => {
                Some(Artifact::Project { pattern: pattern.to_owned() })
            }
        }
    }
}
