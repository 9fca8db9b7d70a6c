//! The subsystem: the tool is there when its runner was tried out, and the reason is told when it
//! is not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, MergedDeclarations, Parts, Subsystem as _};
use rockbot_core::tool::ToolInvokeRequest;
use rockbot_core::{AgentIdentity, CallContext, SystemClock};
use serde_json::json;

use super::super::guarantees::Guarantees;
use super::super::local::Isolation;
use super::super::local::{PACKAGES_OF_ROOT, package_folder};
use super::super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner};
use super::super::system::is_root;
use super::super::{Scripts, local};
use super::{Local, context, measure, packages, sandbox, skip};

/// Bare Python that claims to guarantee something.
#[derive(Debug)]
struct Liar(local::LocalScriptRunner, Guarantees);

#[async_trait]
impl ScriptRunner for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn guarantees(&self) -> Guarantees {
        self.1
    }

    async fn run(&self, script: Script, cx: &CallContext) -> Result<ScriptOutput, ScriptError> {
        self.0.run(script, cx).await
    }
}

/// A runner of a machine without `bwrap`.
#[derive(Debug)]
struct Missing;

#[async_trait]
impl ScriptRunner for Missing {
    fn name(&self) -> &str {
        "missing"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::ALL
    }

    async fn run(&self, _: Script, _: &CallContext) -> Result<ScriptOutput, ScriptError> {
        Err(ScriptError::Unavailable("it is not installed".to_owned()))
    }
}

pub(super) fn declared(mut scripts: Scripts, settings: &str) -> Result<MergedDeclarations, String> {
    let config = Config::new().with_text("agent.toml", settings).unwrap();
    let mut parts = Parts::new(AgentIdentity::new("clerk"), Arc::new(SystemClock), None);
    parts.provide(Arc::new(config));
    let mut declarations = Declarations::new(parts);
    scripts.declare(&mut declarations).map_err(|error| error.to_string())?;
    Ok(declarations.merge())
}

/// Calls the tool, and returns what it answers, also if that is an error.
pub(super) async fn answer(declared: &MergedDeclarations, arguments: serde_json::Value) -> String {
    let tool = &declared.tools[0];
    let request = ToolInvokeRequest::new("c1", tool.registration.name.clone(), arguments.to_string());
    match tool.executor.execute(request, &context()).await {
        Ok(response) => response.content.text().into_owned(),
        Err(error) => error.to_string(),
    }
}

/// Returns the number of tools, and the line of the part.
pub(super) fn offered(scripts: Scripts) -> (usize, String) {
    let declared = declared(scripts, "").unwrap();
    (declared.tools.len(), declared.costs[0].1.to_string())
}

#[tokio::test]
async fn what_was_tried_out_is_listed() {
    if sandbox().await.is_none() {
        return;
    }
    // Inside of a runtime, as in a program.
    let (tools, part) = offered(Scripts::new());
    let expected = "scripts (bubblewrap: no network, no files of the host, no credentials of the host, limited resources, no \
        process left behind): no tokens in a request; no model calls of its own";
    assert_eq!((tools, part.as_str()), (1, expected));
}

#[test]
fn a_runner_that_is_not_there_is_no_error_of_the_host() {
    let (tools, part) = offered(Scripts::with_runner(Missing));
    assert_eq!(
        (tools, part.as_str()),
        (
            0,
            "scripts (unavailable: scripts cannot run here: it is not installed): off"
        )
    );
}

/// Variable of the process of a test whose machine has another `bwrap`: what is said about it.
const OTHER_BWRAP: &str = "ROCKBOT_TEST_OTHER_BWRAP";

/// Not installed, without rights, and a program that walls nothing off.
#[tokio::test]
async fn a_machine_without_a_sandbox_runs_no_script() {
    if let Ok(expected) = std::env::var(OTHER_BWRAP) {
        let reason = measure(&Local::new(Isolation::Bubblewrap).runner).await.unwrap_err();
        return assert!(reason.contains(&expected), "{reason}");
    }
    let refused = "No permissions to create new namespace, likely because the kernel does not allow it";
    for (program, expected) in [
        (
            None,
            "the program `bwrap` is not installed: install the package `bubblewrap`",
        ),
        (Some(format!("echo 'bwrap: {refused}' >&2; exit 1")), refused),
        (
            Some("while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"".to_owned()),
            "`bubblewrap` does not keep what it guarantees: a script ",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        if let Some(program) = program {
            let path = folder.path().join("bwrap");
            std::fs::write(&path, format!("#!/bin/sh\n{program}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let name = "scripts::tests::subsystem::a_machine_without_a_sandbox_runs_no_script";
        let mut test = Command::new(std::env::current_exe().unwrap());
        let test = test
            .args(["--exact", name])
            .env("PATH", folder.path())
            .env(OTHER_BWRAP, expected);
        let output = test.output().unwrap();
        assert!(
            output.status.success(),
            "{expected}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

#[tokio::test]
async fn bare_python_is_offered_as_what_it_is() {
    if let Err(reason) = measure(&Local::new(Isolation::Nothing).runner).await {
        return skip(&reason);
    }
    let (tools, part) = offered(Scripts::unsafe_local());
    assert_eq!(tools, 1);
    assert!(
        part.starts_with("scripts (unsafe-local: NOT guaranteed: no network, no files of the host, "),
        "{part}"
    );
}

#[tokio::test]
async fn a_guarantee_that_is_not_kept_is_found() {
    if let Err(reason) = measure(&Local::new(Isolation::Nothing).runner).await {
        return skip(&reason);
    }
    let none = Guarantees::NONE;
    for (guarantees, reason) in [
        (
            Guarantees {
                no_network: true,
                ..none
            },
            "a script reaches a server of the host",
        ),
        (
            Guarantees { no_files: true, ..none },
            "a script reads a file of the host",
        ),
        (
            Guarantees {
                no_credentials: true,
                ..none
            },
            "a script sees the environment of the host",
        ),
        (
            Guarantees { limits: true, ..none },
            "a script has no limit of processes",
        ),
        (
            Guarantees { cleanup: true, ..none },
            "a process that a script has started goes on",
        ),
    ] {
        let (tools, part) = offered(Scripts::with_runner(Liar(
            Local::new(Isolation::Nothing).runner,
            guarantees,
        )));
        assert_eq!(tools, 0, "{part}");
        assert!(part.contains(reason), "{part}");
    }
}

#[test]
fn wrong_settings_are_errors_of_the_host() {
    for (settings, words) in [
        (
            "DefaultTimeoutSeconds = 0",
            "`Scripts.DefaultTimeoutSeconds` is between 1 and 300",
        ),
        (
            "DefaultTimeoutSeconds = 301",
            "`Scripts.DefaultTimeoutSeconds` is between 1 and 300",
        ),
        (
            "MemoryMegabytes = 1",
            "`Scripts.MemoryMegabytes` is between 64 and 1048576",
        ),
        ("PackageFolder = 1", "`Scripts.PackageFolder`"),
        ("MontyProgram = 1", "`Scripts.MontyProgram`"),
        ("WorkMegabytes = 10241", "`Scripts.WorkMegabytes` is at most 10240"),
        (
            "Runner = \"cloud\"",
            "`Scripts.Runner` is `local`, `monty` or `remote`, not `cloud`",
        ),
    ] {
        let error = declared(Scripts::new(), &format!("[Scripts]\n{settings}")).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_configuration_alone_chooses_the_scripts_manager() {
    for (scripts, settings) in [
        (Scripts::remote(), ""),
        (Scripts::new(), "[Scripts]\nRunner = \"remote\""),
    ] {
        let set = declared(scripts, settings).unwrap();
        assert_eq!(set.missing.len(), 1, "{:?}", set.missing);
        let advice = "give the host a bus with `.bus(…)` or `.shared_bus(…)`: a scripts manager runs scripts over it";
        assert_eq!(
            (set.missing[0].part, &*set.missing[0].advice),
            ("dyn rockbot_core::messaging::bus::Bus", advice)
        );
        let part = "scripts (scripts manager): no tokens in a request; no model calls of its own";
        assert_eq!(set.costs[0].1.to_string(), part);
        let told = answer(&set, json!({"script": "print(1)"})).await;
        assert_eq!(
            told,
            "scripts cannot run here: the host is not started yet: call `AgentHost::start`"
        );
    }
}

#[tokio::test]
async fn settings_reach_the_scripts() {
    if sandbox().await.is_none() {
        return;
    }
    let settings = "[Scripts]\nMemoryMegabytes = 128\nDefaultTimeoutSeconds = 1";
    let set = declared(Scripts::new(), settings).unwrap();
    let memory = json!({"script": "import resource\nprint(resource.getrlimit(resource.RLIMIT_AS)[0] >> 20)"});
    assert!(answer(&set, memory).await.starts_with("128\n"));
    let sleep = json!({"script": "import time\ntime.sleep(300)"});
    let timed_out = answer(&set, sleep.clone()).await;
    assert!(timed_out.contains("Script timed out after 1 s"), "{timed_out}");
    // What the program sets takes precedence.
    let scripts = Scripts::new().with_timeout(Duration::from_millis(1_500));
    let timed_out = answer(&declared(scripts, settings).unwrap(), sleep).await;
    assert!(timed_out.contains("Script timed out after 1.5 s"), "{timed_out}");
}

#[tokio::test]
async fn packages_come_from_the_index_of_the_settings() {
    let Some((_, folder)) = packages::shop().await else {
        return;
    };
    let wheels = folder.path().join("wheels");
    let cache = folder.path().join("kept");
    let settings = format!("[Scripts]\nPackageIndex = {wheels:?}\nPackageFolder = {cache:?}");
    let set = declared(Scripts::new(), &settings).unwrap();
    let script = json!({"script": "import cats\nprint(cats.sound)", "pip_packages": ["cats==1.0"]});
    let told = answer(&set, script).await;
    assert!(told.starts_with("purr\n"), "{told}");
    assert!(cache.is_dir());
}

#[test]
fn packages_stand_in_the_data_folder_unless_root_runs_the_host() {
    let folder = |set: Option<&str>, data: Option<&str>| package_folder(set.map(Into::into), data.map(Path::new));
    assert_eq!(folder(Some("mine"), Some("/data")), Some("/data/mine".into()));
    assert_eq!(folder(Some("/mine"), Some("/data")), Some("/mine".into()));
    assert_eq!(folder(Some("mine"), None), Some("mine".into()));
    let (with, without) = if is_root() {
        (Some(PACKAGES_OF_ROOT.into()), Some(PACKAGES_OF_ROOT.into()))
    } else {
        (Some("/data/script-packages".into()), None)
    };
    assert_eq!((folder(None, Some("/data")), folder(None, None)), (with, without));
}
