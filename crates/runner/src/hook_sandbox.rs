//! Hooks with `hooks.sandbox: true`, run as commands of their workspace.
//!
//! Implements the trait by which the crate `workspace` reaches the sandbox. The policy is loaded and
//! the runner is made when the first such hook runs: most roots have none, and a policy file that
//! cannot be read then concerns nothing but that hook.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use carrel_audit::{AuditLog, AuditedCall};
use carrel_config::{Environment, OperatorPolicy, Trust, Workflow};
use carrel_exec::{CaptureLimits, LazySpawner, Outcome, Output};
use carrel_workspace::{HookSandbox, HookSandboxError, HookSettings, Hooks, SandboxedHook};
use tokio_util::sync::CancellationToken;

use crate::request::{CommandForm, LimitRequest, RunRequest};
use crate::runner::{Runner, RunnerMode, RunnerOptions, SandboxMode};
use crate::workspace_handle::WorkspaceHandle;

/// Runs sandboxed hooks with the operator's policy, in a runner of their own.
#[derive(Debug)]
pub struct SandboxedHooks {
    environment: Environment,
    spawner: LazySpawner,
    events: AuditLog,
    runner: OnceLock<Runner>,
}

impl SandboxedHooks {
    /// Keeps what a runner needs. Reads and starts nothing.
    pub fn new(environment: &Environment, spawner: &LazySpawner, events: AuditLog) -> Arc<Self> {
        let environment = environment.clone();
        let spawner = spawner.clone();
        Arc::new(Self { environment, spawner, events, runner: OnceLock::new() })
    }

    /// Returns the hooks of a workflow file, sandboxed where the file says so.
    pub fn of_workflow(
        workflow: &Workflow,
        environment: &Environment,
        spawner: LazySpawner,
        events: AuditLog,
        cancel: CancellationToken,
    ) -> Hooks {
        let secrets = workflow.known_secrets();
        let settings = HookSettings::new(workflow.config.hooks.clone(), environment, secrets);
        let sandbox = Self::new(environment, &spawner, events);
        Hooks::new(settings, spawner, sandbox, cancel)
    }

    fn runner(&self) -> Result<&Runner, HookSandboxError> {
        if let Some(runner) = self.runner.get() {
            return Ok(runner);
        }
        let loaded = OperatorPolicy::load(None, &self.environment);
        let policy = loaded.map_err(|error| HookSandboxError::new(&error))?.policy;
        Ok(self.runner.get_or_init(|| {
            Runner::new(RunnerOptions {
                spawner: self.spawner.clone(),
                sandbox: SandboxMode::Enforced(policy.tier),
                policy,
                environment: self.environment.clone(),
                disabled: Vec::new(),
                mode: RunnerMode::Server,
                events: self.events.clone(),
            })
        }))
    }
}

impl HookSandbox for SandboxedHooks {
    fn run<'a>(
        &'a self,
        hook: SandboxedHook,
        cancel: &'a CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, HookSandboxError>> + Send + 'a>> {
        Box::pin(async move {
            let runner = self.runner()?;
            let workspace =
                WorkspaceHandle::for_hook(hook.directory, &hook.root, hook.layout, hook.held);
            let argv = ["/bin/sh", "-c", "--", &hook.script].map(Into::into).to_vec();
            let request = RunRequest {
                environment: hook.environment,
                output: Output::Combined(CaptureLimits::default()),
                limits: LimitRequest { wall: Some(hook.timeout), ..LimitRequest::default() },
                log: Some(hook.log),
                // The script is the operator's own.
                trust: Some(Trust::Report),
                audited_call: Some(AuditedCall::of_command_line("hook")),
                ..RunRequest::new(CommandForm::Argv(argv))
            };
            let completed = runner.run(&workspace, request, cancel).await;
            Ok(completed.map_err(|error| HookSandboxError::new(&error))?.outcome)
        })
    }
}
