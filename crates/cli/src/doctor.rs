//! `carrel doctor`: the guarantees that the sandbox gives on this machine.
//!
//! Each tier is tried with a real command; settings of the kernel are not trusted. The exit status is 1 if
//! commands would be refused, so a deployment can be gated on it.

use std::process::ExitCode;

use carrel_runner::{Diagnosis, diagnose};
use carrel_tools::AuditLog;

use crate::arguments::SandboxArguments;
use crate::error::Result;
use crate::output::{self, Invocation};
use crate::sandbox;

/// Says layer by layer what holds here. What holds is tried, not assumed.
pub(crate) fn run(arguments: &SandboxArguments, cli: &Invocation) -> Result<ExitCode> {
    let environment = &cli.environment;
    let runner = sandbox::server_runner(arguments, environment, AuditLog::none())?;
    let state = sandbox::state(environment)?;
    let diagnosis = crate::runtime()?.block_on(diagnose(&runner, &state))?;
    cli.print(&diagnosis, || output::write(text(&diagnosis).as_bytes()))?;
    Ok(if diagnosis.tier.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(diagnosis: &Diagnosis) -> String {
    let tier = diagnosis.tier.map_or("none", |tier| tier.as_str());
    let layers = diagnosis.layers.iter().map(|layer| {
        let available = if layer.available { "yes" } else { "no" };
        [layer.name.to_owned(), available.to_owned(), layer.detail.clone()]
    });
    let guarantees = diagnosis.guarantees.iter().map(|guarantee| {
        let holds = if guarantee.holds { "holds" } else { "NOT" };
        [guarantee.name.to_owned(), holds.to_owned(), guarantee.why.clone()]
    });
    format!(
        "kernel {}, Landlock version {}, tier {tier}\n\
         network of commands: {}, at most {} if they ask; --network and policy.toml set another\n\n{}\n{}",
        diagnosis.kernel,
        diagnosis.landlock_abi,
        diagnosis.network,
        diagnosis.network_cap,
        output::table(["LAYER", "", "DETAIL"], layers),
        output::table(["GUARANTEE", "", "WHY"], guarantees)
    )
}
