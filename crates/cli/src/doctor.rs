//! `carrel doctor`: the guarantees that the sandbox gives on this machine.
//!
//! Each tier is tried with a real command; settings of the kernel are not trusted. The exit status is 1 if
//! commands would be refused, so a deployment can be gated on it.

use std::process::ExitCode;

use carrel_config::Environment;
use carrel_runner::{Diagnosis, RunnerMode, diagnose};

use crate::arguments::DoctorArguments;
use crate::error::CliError;
use crate::output::{self, Format};
use crate::sandbox;

/// Says layer by layer what holds here. What holds is tried, not assumed.
pub(crate) fn run(
    arguments: &DoctorArguments,
    format: Format,
    environment: &Environment,
) -> Result<ExitCode, CliError> {
    let loaded = sandbox::policy(&arguments.sandbox, environment)?;
    let state = sandbox::state(environment)?;
    let (policy, purpose) = (loaded.policy, RunnerMode::Server);
    let runner = sandbox::runner(&arguments.sandbox, policy, environment, purpose)?;
    let runtime = crate::runtime()?;
    let diagnosis = runtime.block_on(diagnose(&runner, &state))?;
    match format {
        Format::Json => output::json(&diagnosis)?,
        Format::Text => output::write(text(&diagnosis).as_bytes())?,
    }
    Ok(if diagnosis.tier.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(diagnosis: &Diagnosis) -> String {
    let tier = diagnosis.tier.map_or("none", |tier| tier.as_str());
    let mut rows = vec![["LAYER", "", "DETAIL"].map(str::to_owned)];
    rows.extend(diagnosis.layers.iter().map(|layer| {
        let available = if layer.available { "yes" } else { "no" };
        [layer.name.to_owned(), available.to_owned(), layer.detail.clone()]
    }));
    let mut promises = vec![["GUARANTEE", "", "WHY"].map(str::to_owned)];
    promises.extend(diagnosis.guarantees.iter().map(|guarantee| {
        let holds = if guarantee.holds { "holds" } else { "NOT" };
        [guarantee.name.to_owned(), holds.to_owned(), guarantee.why.clone()]
    }));
    format!(
        "kernel {}, Landlock version {}, tier {tier}\n\n{}\n{}",
        diagnosis.kernel,
        diagnosis.landlock_abi,
        output::table(&rows),
        output::table(&promises)
    )
}
