//! The pods themselves: their rights, and a script and an installer inside of a pod.

use std::process::{Command, Output};
use std::time::Duration;

use rockbot_tools::scripts::Script;
use serde_json::{Value, json};

use super::super::pod;
use super::{MANAGER, settings};

fn of_script(script: &Script, text: &str) -> Value {
    let pod = pod::of_script(&settings(text), MANAGER, script, None).unwrap();
    serde_json::to_value(pod).unwrap()
}

#[test]
fn a_pod_has_no_rights() {
    let script = Script::new("print(1)").with_timeout(Duration::from_secs(45));
    let mut pod = of_script(&script, "");
    let user = pod["spec"]["securityContext"]["runAsUser"].take();
    assert!((10_000..60_000).contains(&user.as_u64().unwrap()), "{user}");
    let name = pod["metadata"]["name"].take();
    let name = name.as_str().unwrap();
    assert!(name.starts_with("rockbot-script-") && name.len() <= 63, "{name}");
    let container = pod["spec"]["containers"][0].as_object_mut().unwrap();
    container.remove("command").unwrap();
    container.remove("env").unwrap();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": null,
            "namespace": "rockbot-scripts",
            "labels": {"app": "rockbot-script", "rockbot.dev/manager": "manager-1", "rockbot.dev/step": "script"},
        },
        "spec": {
            "activeDeadlineSeconds": 75,
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "script",
                "image": "python:3.12-slim",
                "imagePullPolicy": "IfNotPresent",
                "resources": {
                    "limits": {"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "128Mi"},
                    "requests": {"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "128Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                    "privileged": false,
                    "readOnlyRootFilesystem": true,
                },
                "terminationMessagePath": "/dev/termination-log",
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }],
            "enableServiceLinks": false,
            "restartPolicy": "Never",
            "securityContext": {
                "fsGroup": 65_534,
                "runAsGroup": 65_534,
                "runAsNonRoot": true,
                "runAsUser": null,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
        },
    });
    assert_eq!(pod, expected);
}

#[test]
fn settings_reach_the_pod() {
    let text = "[Kubernetes]\nNamespace = \"mine\"\nImage = \"python:3.13\"\nCpuMillis = 250\nMemoryMegabytes = 512\n\
        NodeName = \"localhost\"\nStartSeconds = 60\nPackageClaim = \"packages\"";
    let pod = of_script(&Script::new("x"), text);
    assert_eq!(pod["metadata"]["namespace"], "mine");
    let spec = &pod["spec"];
    assert_eq!(
        (&spec["nodeName"], &spec["activeDeadlineSeconds"]),
        (&json!("localhost"), &json!(100))
    );
    let container = &spec["containers"][0];
    assert_eq!(container["image"], "python:3.13");
    assert_eq!(container["resources"]["limits"]["cpu"], "250m");
    assert_eq!(container["resources"]["limits"]["memory"], "512Mi");
    assert_eq!(spec["volumes"][1]["persistentVolumeClaim"]["claimName"], "packages");
}

#[test]
fn variables_are_short_and_nothing_in_them_is_a_reference() {
    let script = Script::new("x").with_input("$(HOME) \u{1}".repeat(50_000));
    let pod = of_script(&script, "");
    let env = pod["spec"]["containers"][0]["env"].as_array().unwrap().clone();
    let values: Vec<_> = env.iter().map(|variable| variable["value"].as_str().unwrap()).collect();
    assert_eq!(values.len(), 7);
    let is_plain = |value: &&str| value.len() <= 98_304 && !value.contains('$');
    assert!(values.iter().all(is_plain));
}

/// Runs the command of a script's pod on this machine, with a file for its errors. Returns its
/// output and its errors.
fn run(script: &Script) -> (Output, String) {
    let folder = std::env::temp_dir();
    let message = folder.join(format!("rockbot-message-{}", uuid::Uuid::new_v4().simple()));
    std::fs::write(&message, "").unwrap();
    let pod = of_script(script, "");
    let container = &pod["spec"]["containers"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut command: Vec<_> = container["command"].as_array().unwrap().iter().map(text).collect();
    for word in &mut command {
        if word == "/dev/termination-log" {
            *word = message.to_str().unwrap().to_owned();
        }
    }
    let env = container["env"].as_array().unwrap().iter();
    let env = env.map(|variable| (text(&variable["name"]), text(&variable["value"])));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = Command::new(&command[0])
        .args(&command[1..])
        .env_clear()
        .env("PATH", path)
        .envs(env)
        .output()
        .unwrap();
    let errors = std::fs::read_to_string(&message).unwrap();
    std::fs::remove_file(&message).unwrap();
    (output, errors)
}

#[test]
fn a_script_in_a_pod_has_the_environment_of_the_contract() {
    let source = "import os, sys\nprint('Zoë', __name__, sys.argv, os.environ.get('ROCKBOT_INPUT'), sys.stdin.read())\n\
        print([name for name in os.environ if name.startswith('ROCKBOT_PART')], os.getcwd())\n\
        print('why', file=sys.stderr)\nsys.exit(3)";
    let (output, errors) = run(&Script::new(source).with_input("$(x) é"));
    let expected = "Zoë __main__ ['script.py'] $(x) é $(x) é\n[] /tmp\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!((output.status.code(), &*errors), (Some(3), "why\n"));

    let failed = run(&Script::new("a = 1\nraise ValueError(a)"));
    assert_eq!(failed.0.status.code(), Some(1));
    assert!(
        failed.1.contains("File \"script.py\", line 2, in <module>"),
        "{failed:?}"
    );
}

#[test]
fn input_of_any_size_and_the_limits_reach_the_script() {
    let source = "import os, sys, resource\nread = sys.stdin.read()\nvariable = os.environ.get('ROCKBOT_INPUT')\n\
        print(len(read), variable == read, variable is None)\n\
        print([resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)])";
    let limits = "[536870912, 61, 67108864]\n";
    for (input, expected) in [
        ("x".repeat(65_536), "65536 True False\n"),
        ("x".repeat(65_537), "65537 False True\n"),
        ("x".repeat(500 << 10), "512000 False True\n"),
        ("a\0b".to_owned(), "3 False True\n"),
        (String::new(), "0 True False\n"),
    ] {
        let (output, errors) = run(&Script::new(source).with_input(input));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("{expected}{limits}"),
            "{errors}"
        );
    }
}

#[test]
fn the_installer_leaves_whole_sets_alone() {
    let packages = ["numpy".to_owned(), "pandas==2.2.3".to_owned()];
    let pod = pod::of_packages(
        &settings("[Kubernetes]\nPackageClaim = \"p\""),
        MANAGER,
        "set",
        &packages,
    )
    .unwrap();
    let pod = serde_json::to_value(pod).unwrap();
    assert_eq!(pod["metadata"]["labels"]["rockbot.dev/step"], "packages");
    let command = pod["spec"]["containers"][0]["command"].as_array().unwrap().clone();
    let folder = std::env::temp_dir().join(format!("rockbot-sets-{}", uuid::Uuid::new_v4().simple()));
    // In the place of Python: an installer that notes its arguments, or fails.
    let python = "#!/bin/sh\nset -e; mkdir -p bin; while [ \"$1\" != --target ]; do shift; done\n\
        [ -z \"$FAILS\" ] || exit 1; mkdir \"$2\"; echo \"$@\" > \"$2/arguments\"; echo once >> runs\n";
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    std::fs::write(folder.join("bin/python3"), python).unwrap();
    std::fs::set_permissions(
        folder.join("bin/python3"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let install = |host: &str, fails: &str| {
        let mut words = command.iter().map(|word| word.as_str().unwrap());
        let mut shell = Command::new(words.next().unwrap());
        shell.arg(words.next().unwrap());
        shell.arg(words.next().unwrap().replace("/packages", folder.to_str().unwrap()));
        shell.args(words).env("HOSTNAME", host).env("FAILS", fails);
        let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
        shell.env("PATH", path).status().unwrap().success()
    };
    assert!(!install("a", "yes"));
    assert!(!folder.join("set").exists(), "a set is there when it is complete");
    assert!(install("b", "") && install("c", ""));
    let arguments = std::fs::read_to_string(folder.join("set/arguments")).unwrap();
    assert_eq!(arguments, "--target set.b -- numpy pandas==2.2.3\n");
    assert_eq!(std::fs::read_to_string(folder.join("runs")).unwrap(), "once\n");
    std::fs::remove_dir_all(folder).unwrap();
}
