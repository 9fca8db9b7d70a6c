//! Runs that go well: output, exit codes, packages, and no pod that is left.

use std::time::Duration;

use rockbot_core::config::Config;
use rockbot_tools::scripts::{Package, Script, ScriptError, ScriptOutput, ScriptRunner as _};
use serde_json::json;

use super::fake::{Cluster, ended, running, status};
use super::{KubernetesSettings, context, run, runner};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_script_has_its_output_and_its_pod_is_deleted() {
    let cluster = Cluster::new("42\n", |_| vec![(SECOND, running()), (SECOND, ended(0, "a warning"))]);
    let output = run(&cluster, Script::new("print(42)")).await;
    assert_eq!(output, Ok(ScriptOutput::new(0, "42\n", "a warning")));
    assert_eq!(cluster.pods(), Vec::<String>::new());
    let until_it_runs = ["GET pods", "POST pods", "GET pod", "GET watch"];
    let until_it_ends = ["GET pod", "GET watch", "GET log", "DELETE pod"];
    assert_eq!(cluster.requests(), [until_it_runs, until_it_ends].concat());
}

#[tokio::test(start_paused = true)]
async fn a_script_that_fails_has_its_exit_code_and_its_errors() {
    let cluster = Cluster::new("half", |_| vec![(SECOND, ended(3, "why\n"))]);
    let output = run(&cluster, Script::new("x")).await;
    assert_eq!(output, Ok(ScriptOutput::new(3, "half", "why\n")));
}

#[tokio::test(start_paused = true)]
async fn a_script_ends_at_its_time_limit() {
    let cluster = Cluster::new("begun\n", |_| vec![(SECOND, running())]);
    let script = Script::new("x").with_timeout(Duration::from_secs(7));
    let began = tokio::time::Instant::now();
    let output = run(&cluster, script).await;
    assert_eq!(output, Ok(ScriptOutput::timed_out("begun\n", "")));
    let took = began.elapsed();
    assert!(
        (8 * SECOND..10 * SECOND).contains(&took),
        "the time to start does not count: {took:?}"
    );
    assert_eq!(cluster.pods(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn output_is_cut_off() {
    let cluster = Cluster::new(&"é".repeat(200_000), |_| vec![(SECOND, ended(0, ""))]);
    let output = run(&cluster, Script::new("x")).await.unwrap();
    let expected = "é".repeat(131_072) + "\n[cut off after 256 KiB: print less]";
    assert!(output.stdout == expected, "{}", output.stdout.len());
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_for_a_pod_is_refused_before_there_is_one() {
    let cluster = Cluster::new("", |_| Vec::new());
    let refused = run(&cluster, Script::new("x").with_input("y".repeat(512 << 10))).await;
    let reason = "source and input have 524289 bytes, of 524288: pass less input";
    assert_eq!(refused, Err(ScriptError::Refused(reason.to_owned())));
    assert_eq!(cluster.created(), Vec::<serde_json::Value>::new());
}

fn packages() -> Vec<Package> {
    ["pandas==2.2.3", "numpy"].map(|name| name.parse().unwrap()).to_vec()
}

#[tokio::test(start_paused = true)]
async fn packages_are_installed_once_by_a_pod_of_their_own() {
    let cluster = Cluster::new("", |_| vec![(SECOND, ended(0, ""))]);
    let runner = runner(
        &cluster,
        "[Kubernetes]\nPackageClaim = \"packages\"\nPackageIndex = \"https://index/simple\"",
    )
    .await;
    for _ in 0..2 {
        let script = Script::new("import numpy").with_packages(packages());
        runner.run(script, &context()).await.unwrap();
    }
    let created = cluster.created();
    let steps: Vec<_> = created
        .iter()
        .map(|pod| &pod["metadata"]["labels"]["rockbot.dev/step"])
        .collect();
    assert_eq!(steps, ["packages", "script", "script"]);
    let install = &created[0]["spec"]["containers"][0];
    let arguments: Vec<_> = install["command"].as_array().unwrap().iter().skip(5).collect();
    assert_eq!(arguments, ["numpy", "pandas==2.2.3"]);
    assert_eq!(
        install["env"][1],
        json!({"name": "PIP_INDEX_URL", "value": "https://index/simple"})
    );
    let folder = &install["command"][4];
    let mount = json!({"name": "packages", "mountPath": "/packages", "subPath": folder, "readOnly": true});
    let script = &created[1]["spec"]["containers"][0];
    assert_eq!(script["volumeMounts"][1], mount);
    assert_eq!(script["command"].as_array().unwrap().last().unwrap(), "/packages");
}

#[tokio::test(start_paused = true)]
async fn packages_that_cannot_be_installed_are_an_error_with_the_installer_s_words() {
    let failed = Cluster::new("No matching distribution\n", |_| vec![(SECOND, ended(1, ""))]);
    let runner = runner(&failed, "[Kubernetes]\nPackageClaim = \"packages\"").await;
    let script = Script::new("x").with_packages(packages());
    let error = runner.run(script.clone(), &context()).await;
    assert_eq!(error, Err(ScriptError::Packages("No matching distribution".to_owned())));
    let none = run(&failed, script).await.unwrap_err().to_string();
    assert!(
        none.contains("no volume for packages (`Kubernetes.PackageClaim`)"),
        "{none}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_network_is_tried_out() {
    for (said, expected) in [("closed\n", Some(true)), ("open\n", Some(false)), ("", None)] {
        let cluster = Cluster::new(said, |_| vec![(SECOND, ended(0, ""))]);
        let runner = runner(&cluster, "").await;
        assert_eq!(runner.has_no_network("10.0.0.1", 443).await.ok(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_may_take_its_time_and_its_watch_may_be_cut() {
    let states = || {
        let pulling = json!({"waiting": {"reason": "ErrImagePull", "message": "try again"}});
        vec![
            (SECOND, json!({"phase": "Pending"})),
            (
                SECOND,
                status("Pending", &json!({"waiting": {"reason": "ContainerCreating"}})),
            ),
            (3 * SECOND, status("Pending", &pulling)),
            (3 * SECOND, running()),
            (SECOND, ended(0, "")),
        ]
    };
    for events in [0, 1, 2, usize::MAX] {
        let cluster = Cluster::cutting(events, "42\n", move |_| states());
        let output = run(&cluster, Script::new("x")).await;
        assert_eq!(output, Ok(ScriptOutput::new(0, "42\n", "")), "cut after {events}");
        assert_eq!(cluster.pods(), Vec::<String>::new());
    }
}

#[test]
fn wrong_settings_are_named() {
    for (settings, expected) in [
        (
            "MemoryMegabytes = 1",
            "`Kubernetes.MemoryMegabytes` is between 32 and 1048576",
        ),
        (
            "CpuMillis = 0",
            "`Kubernetes.CpuMillis` and `Kubernetes.StartSeconds` are above zero",
        ),
        (
            "PackageIndex = \"https://me:secret@index\"",
            "`Kubernetes.PackageIndex` has a password, which pods would show: use an index without one",
        ),
    ] {
        let text = format!("[Kubernetes]\n{settings}");
        let config = Config::new().with_text("manager.toml", &text).unwrap();
        assert_eq!(
            KubernetesSettings::from_config(&config).unwrap_err().to_string(),
            expected
        );
    }
}
