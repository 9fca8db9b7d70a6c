//! Scripts that go over every limit, and hosts and callers that end before their scripts: nothing
//! is left behind.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;

use super::super::local::Isolation;
use super::super::runner::{Script, ScriptOutput, ScriptRunner as _};
use super::{Local, context, sandbox};

const SECOND: Duration = Duration::from_secs(1);

/// Leaves a process that has left its session, its group and its parent, and heeds no signal that
/// it may ignore.
const DAEMON: &str = "
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid() if os.getpid() != os.getsid(0) else None
        time.sleep(300)
    os._exit(0)
print('left', flush=True)
";

/// Variable of the process of a test that is a host which dies, with the memory of its runner.
const DYING_HOST: &str = "ROCKBOT_TEST_DYING_SCRIPTS_HOST";

#[tokio::test]
async fn a_fork_bomb_is_contained_and_leaves_nothing() {
    let Some(sandbox) = sandbox().await else { return };
    let bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass";
    let output = sandbox.run_for(bomb, 3 * SECOND).await;
    assert_eq!(output.exit_code, None, "{output:?}");
    sandbox.is_gone().await;
    let count = "import os\nn = 0\ntry:\n    while n < 500:\n        if os.fork() == 0:\n            import time; time.sleep(300)\n        \
        n += 1\nexcept OSError as error:\n    print(n < 64, error.errno)";
    assert_eq!(sandbox.run(count).await.stdout, "True 11\n");
    sandbox.is_gone().await;
}

#[tokio::test]
async fn a_process_that_left_the_script_ends_with_it() {
    let Some(sandbox) = sandbox().await else { return };
    let output = sandbox.run(DAEMON).await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), "left\n"));
    sandbox.is_gone().await;
}

#[tokio::test]
async fn a_script_that_ignores_signals_is_killed_at_its_time_limit() {
    let Some(sandbox) = sandbox().await else { return };
    let output = sandbox.run_for(&format!("{DAEMON}\ntime.sleep(300)"), 2 * SECOND).await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (None, "left\n"));
    sandbox.is_gone().await;
}

/// Bubblewrap that is killed between the start of its child and the child's tie to it leaves the
/// child behind, which then ends by itself.
#[tokio::test]
async fn a_script_that_is_given_up_while_it_begins_leaves_nothing() {
    let Some(sandbox) = sandbox().await else { return };
    let cx = context();
    for millis in 0..80 {
        let script = Script::new("import time\ntime.sleep(300)");
        let running = sandbox.runner.run(script, &cx);
        let _ = timeout(Duration::from_millis(millis / 2), running).await;
    }
    sandbox.is_gone().await;
}

#[tokio::test]
async fn a_script_ends_when_its_caller_gives_up() {
    let Some(sandbox) = sandbox().await else { return };
    let script = Script::new(format!("{DAEMON}\ntime.sleep(300)"));
    let cx = context();
    let mut running = Box::pin(sandbox.runner.run(script, &cx));
    tokio::select! {
        output = &mut running => panic!("{output:?}"),
        () = sandbox.runs() => {}
    }
    // Also when all of it has begun.
    let _ = timeout(SECOND, &mut running).await;
    drop(running);
    sandbox.is_gone().await;
}

#[tokio::test]
async fn a_script_ends_when_its_host_is_killed() {
    if let Ok(memory) = std::env::var(DYING_HOST) {
        let local = Local::with_memory(Isolation::Bubblewrap, memory.parse().unwrap());
        let script = Script::new(format!("{DAEMON}\ntime.sleep(300)"));
        let _ = local.runner.run(script, &context()).await;
        return;
    }
    let Some(sandbox) = sandbox().await else { return };
    let name = "scripts::tests::faults::a_script_ends_when_its_host_is_killed";
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(DYING_HOST, &sandbox.marker)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    sandbox.runs().await;
    tokio::time::sleep(SECOND).await;
    sandbox.runs().await;
    host.kill().unwrap();
    host.wait().unwrap();
    sandbox.is_gone().await;
}

#[tokio::test]
async fn a_gigabyte_of_output_is_cut_off() {
    let Some(sandbox) = sandbox().await else { return };
    for script in [
        "import os\nfor _ in range(1 << 14):\n    os.write(1, b'x' * 65536)",
        "import os\nfor _ in range(1 << 14):\n    os.write(2, b'x\\n' * 32768)",
        "import sys\nsys.stdout.write('x' * (1 << 27))",
    ] {
        let output = sandbox.run(script).await;
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
        assert!(output.stdout.len() < 300_000 && output.stderr.len() < 20_000);
    }
    sandbox.is_gone().await;
}

#[tokio::test]
async fn what_goes_over_a_limit_fails_with_its_reason() {
    let Some(sandbox) = sandbox().await else { return };
    for (script, reason) in [
        ("x = bytearray(4 << 30)", "MemoryError"),
        ("x = []\nwhile True:\n    x.append(bytearray(1 << 20))", "MemoryError"),
        ("open('big', 'wb').truncate(1 << 30)", "File too large"),
        (
            "for n in range(9):\n    open(str(n), 'wb').write(b'x' * (16 << 20))",
            "No space left on device",
        ),
        (
            "open('/dev/shm/big', 'wb').write(b'x' * (32 << 20))",
            "No space left on device",
        ),
        ("x = [open('/dev/null') for _ in range(1000)]", "Too many open files"),
        (
            "import threading, time\nfor _ in range(99):\n    threading.Thread(target=time.sleep, args=(1,)).start()",
            "can't start new thread",
        ),
    ] {
        let output = sandbox.run(script).await;
        assert_ne!(output.exit_code, Some(0), "{script}");
        assert!(output.stderr.contains(reason), "{script}: {output:?}");
    }
    let script = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))";
    assert!(
        sandbox
            .run(script)
            .await
            .stderr
            .contains("not allowed to raise maximum limit")
    );
    let busy = sandbox
        .run("import resource as r\nr.setrlimit(r.RLIMIT_CPU, (1, 1))\nwhile True: pass")
        .await;
    assert!(matches!(busy.exit_code, Some(137 | 152)), "{busy:?}");
    sandbox.is_gone().await;
}

#[tokio::test]
async fn the_memory_of_all_processes_together_is_limited() {
    let Some(sandbox) = sandbox().await else { return };
    let greedy = "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        taken = b'x' * (150 << 20)\n        \
        time.sleep(300)\ntime.sleep(300)";
    let output = sandbox.run(greedy).await;
    assert_eq!(output.exit_code, Some(137), "{output:?}");
    let megabytes = sandbox.runner.memory >> 20;
    let reason = format!("MemoryError: all processes of the script together took more than {megabytes} MiB\n");
    assert_eq!(output.stderr, reason);
    // Memory that processes share is counted once.
    let shared = "import os, time\nshared = b'x' * (300 << 20)\nfor _ in range(8):\n    if os.fork() == 0:\n        \
        time.sleep(2)\n        os._exit(0)\ntime.sleep(2)\nprint('fine')";
    assert_eq!(sandbox.run(shared).await, ScriptOutput::new(0, "fine\n", ""));
    sandbox.is_gone().await;
}

#[tokio::test]
async fn a_script_may_close_its_output() {
    let Some(sandbox) = sandbox().await else { return };
    let output = sandbox
        .run("import os\nprint('first')\nos.close(1)\nos.close(2)\nos._exit(0)")
        .await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), "first\n"));
    let output = sandbox
        .run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        .await;
    assert_eq!(output.exit_code, Some(137));
}

/// A process outside of the sandbox that has the word in its environment alone.
#[tokio::test]
async fn the_marker_of_these_tests_is_seen() {
    let mut child = Command::new("sh")
        .args(["-c", "echo up; read line", "rockbot-marker-of-a-test"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    child.stdout.take().unwrap().read_exact(&mut up).unwrap();
    assert!(super::is_running("rockbot-marker-of-a-test"));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!super::is_running("rockbot-marker-of-a-test"));
}
