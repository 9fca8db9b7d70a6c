//! The contract of script runners, for each runner: what it does not declare is not asked of it.

use std::time::Duration;

use super::super::canary::measure;
use super::super::guarantees::Guarantees;
use super::super::local::Isolation;
use super::super::runner::{Script, ScriptOutput, ScriptRunner};
use super::{Local, context, sandbox, skip};

/// Checks that a runner keeps the contract, and what it guarantees.
async fn conform(runner: &dyn ScriptRunner) {
    speaks_with_scripts(runner).await;
    reads_input_of_any_size(runner).await;
    bounds_time_and_output(runner).await;
    assert_eq!(measure(runner).await, Ok(runner.guarantees()));
}

async fn ran(runner: &dyn ScriptRunner, script: Script) -> ScriptOutput {
    runner.run(script, &context()).await.unwrap()
}

async fn speaks_with_scripts(runner: &dyn ScriptRunner) {
    let script =
        "import os, sys\nprint('Zoë', __name__, sys.argv, os.environ['ROCKBOT_INPUT'] == '', sys.stdin.read() == '')";
    let expected = ScriptOutput::new(0, "Zoë __main__ ['script.py'] True True\n", "");
    assert_eq!(ran(runner, Script::new(script)).await, expected);

    let script = "import sys\nprint('half', end='')\nprint('why', file=sys.stderr)\nsys.exit(3)";
    assert_eq!(
        ran(runner, Script::new(script)).await,
        ScriptOutput::new(3, "half", "why\n")
    );

    let failed = ran(runner, Script::new("a = 1\nraise ValueError(a)")).await;
    assert_eq!(failed.exit_code, Some(1));
    assert!(
        failed.stderr.contains("File \"script.py\", line 2, in <module>"),
        "{failed:?}"
    );
    assert!(failed.stderr.ends_with("ValueError: 1\n"), "{failed:?}");
    for source in ["print(", "print(1)\0", ""] {
        let is_empty = source.is_empty();
        let output = ran(runner, Script::new(source)).await;
        assert_eq!(output.exit_code == Some(0), is_empty, "{output:?}");
    }
    let bytes = ran(runner, Script::new("import os\nos.write(1, b'a\\xffb')")).await;
    assert_eq!(bytes.stdout, "a\u{fffd}b");
}

async fn reads_input_of_any_size(runner: &dyn ScriptRunner) {
    let script = "import os, sys, subprocess\nread = sys.stdin.read()\nvariable = os.environ.get('ROCKBOT_INPUT')\n\
        print(len(read), variable == read, variable is None, subprocess.run(['true']).returncode)";
    for (input, expected) in [
        ("x".repeat(65_536), "65536 True False 0\n"),
        ("x".repeat(65_537), "65537 False True 0\n"),
        ("x".repeat(20 << 20), "20971520 False True 0\n"),
        ("a\0b\r\n".to_owned(), "4 False True 0\n"),
    ] {
        let output = ran(runner, Script::new(script).with_input(input)).await;
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (expected, ""));
    }
    let unread = Script::new("print(1)").with_input("x".repeat(20 << 20));
    assert_eq!(ran(runner, unread).await.stdout, "1\n");
}

async fn bounds_time_and_output(runner: &dyn ScriptRunner) {
    let script = Script::new("import time\nprint('begun')\ntime.sleep(300)").with_timeout(Duration::from_secs(2));
    let output = ran(runner, script).await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (None, "begun\n"));

    let long = ran(
        runner,
        Script::new("print('x' * 1_000_000)\nimport sys\nsys.stderr.write('y' * 1_000_000)"),
    )
    .await;
    assert!(long.stdout.ends_with("\n[cut off after 256 KiB: print less]"));
    assert!(long.stdout.len() < 300_000 && long.stderr.len() < 20_000);
    assert_eq!(long.exit_code, Some(0));
}

#[tokio::test]
async fn the_sandbox_keeps_the_contract() {
    let Some(sandbox) = sandbox().await else { return };
    assert_eq!(sandbox.runner.guarantees(), Guarantees::ALL);
    conform(&sandbox.runner).await;
    sandbox.is_gone().await;
}

#[tokio::test]
async fn bare_python_keeps_the_contract_and_guarantees_nothing() {
    let local = Local::new(Isolation::Nothing);
    if let Err(reason) = measure(&local.runner).await {
        return skip(&reason);
    }
    assert_eq!(local.runner.guarantees(), Guarantees::NONE);
    conform(&local.runner).await;
    local.is_gone().await;
}
