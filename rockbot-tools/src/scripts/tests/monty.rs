//! The runner of `monty`: its contract, what it keeps from scripts, and each word of its guide.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::super::Scripts;
use super::super::guarantees::Guarantees;
use super::super::monty::MontyScriptRunner;
use super::super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner as _};
use super::super::system::find;
use super::subsystem::{answer, declared, offered};
use super::{context, is_running, marked_memory, measure, skip, wait_for};

/// Variable with the path of the program.
const PROGRAM: &str = "ROCKBOT_TEST_MONTY";

/// Variable of the process of a test that is a host which dies: the memory of its runner.
const DYING_HOST: &str = "ROCKBOT_TEST_DYING_MONTY_HOST";

/// Variable of the process of a test whose machine has no `bwrap`.
const NO_BWRAP: &str = "ROCKBOT_TEST_NO_BWRAP";

/// A runner whose processes are known by a number in their command lines: its limit of memory.
struct Monty {
    runner: MontyScriptRunner,
    /// Holds the program, where all users may run it, as after an installation.
    folder: TempDir,
}

impl Monty {
    /// Returns the runner, or `None` with a reason on the output where the program is not there.
    fn new() -> Option<Self> {
        let Some(program) = std::env::var_os(PROGRAM) else {
            skip(&format!(
                "{PROGRAM} is not set: `.ci/monty` installs the program and names it"
            ));
            return None;
        };
        let folder = open_folder();
        fs::copy(program, folder.path().join("monty")).unwrap();
        let program = folder.path().join("monty").to_string_lossy().into_owned();
        let memory = marked_memory();
        let runner = MontyScriptRunner { program, memory };
        Some(Self { runner, folder })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("monty")
    }

    async fn run(&self, source: &str) -> ScriptOutput {
        self.run_script(Script::new(source)).await
    }

    async fn run_script(&self, script: Script) -> ScriptOutput {
        self.runner.run(script, &context()).await.unwrap()
    }

    fn is_running(&self) -> bool {
        is_running(&self.runner.memory.to_string())
    }
}

/// Creates a folder that every user may read and write.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    folder
}

#[tokio::test]
async fn monty_keeps_what_it_guarantees() {
    let Some(monty) = Monty::new() else { return };
    assert_eq!(measure(&monty.runner).await, Ok(Guarantees::ALL));
    wait_for(|| !monty.is_running()).await;
}

#[tokio::test]
async fn monty_speaks_with_scripts() {
    let Some(monty) = Monty::new() else { return };
    let zoe = monty.run("print('Zoë', __name__, ROCKBOT_INPUT == '')").await;
    assert_eq!(zoe, ScriptOutput::new(0, "Zoë __main__ True\n", ""));

    let source = "import sys\nprint('half', end='')\nprint('why', file=sys.stderr)";
    assert_eq!(monty.run(source).await, ScriptOutput::new(0, "half", "why\n"));

    let traceback = "Traceback (most recent call last):\n  File \"script.py\", line 4, in <module>\n  \
        File \"script.py\", line 3, in f\nValueError: 1 ❯ 2\n";
    let failed = "import sys\ndef f():\n    raise ValueError('1 ❯ 2')\nf()";
    assert_eq!(monty.run(failed).await, ScriptOutput::new(1, "", traceback));

    let wrong = monty.run("x = 1\nprint(").await;
    assert_eq!(wrong.exit_code, Some(1));
    assert!(
        wrong
            .stderr
            .starts_with("Traceback (most recent call last):\nSyntaxError: ")
            && wrong.stderr.contains("script.py"),
        "{wrong:?}"
    );
    assert_eq!(monty.run("").await, ScriptOutput::new(0, "", ""));
    assert_eq!(monty.run("print(1)\0").await.exit_code, Some(1));
}

#[tokio::test]
async fn input_of_any_size_is_in_the_variable() {
    let Some(monty) = Monty::new() else { return };
    let source = "def first():\n    return ROCKBOT_INPUT[:3].encode()\nprint(len(ROCKBOT_INPUT), first())";
    for (input, expected) in [
        ("a\0b\r\n".to_owned(), "5 b'a\\x00b'\n"),
        ("ß".repeat(3), "3 b'\\xc3\\x9f\\xc3\\x9f\\xc3\\x9f'\n"),
        ("x".repeat(20 << 20), "20971520 b'xxx'\n"),
    ] {
        let output = monty.run_script(Script::new(source).with_input(input)).await;
        assert_eq!(output, ScriptOutput::new(0, expected, ""));
    }
}

#[tokio::test]
async fn packages_are_refused_with_advice() {
    let Some(monty) = Monty::new() else { return };
    let script = Script::new("import numpy").with_packages(["numpy".parse().unwrap()]);
    let refused = monty.runner.run(script, &context()).await.unwrap_err();
    let ScriptError::Refused(advice) = refused else {
        panic!("{refused}")
    };
    assert!(advice.contains("leave out `pip_packages`"), "{advice}");
}

/// The guide of a runner must not name modules that are missing, nor hide those that are there.
#[tokio::test]
async fn the_guide_says_what_is_true() {
    let Some(monty) = Monty::new() else { return };
    let guide = monty.runner.subset().unwrap().replace('\n', " ");
    let (_, listed) = guide.split_once("with a part of their functions: ").unwrap();
    let (listed, _) = listed.split_once(". There are no others").unwrap();
    let imports: String = listed
        .split(", ")
        .map(|name| format!("import {}\n", name.trim()))
        .collect();
    assert_eq!(monty.run(&imports).await, ScriptOutput::new(0, "", ""), "{imports}");

    let works = "
from dataclasses import dataclass
@dataclass
class Point:
    x: int
def counted():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
with open('kept', 'w') as file:
    file.write('kept')
match [1, 2]:
    case [a, b]:
        print(f'{a + b:.1f}', Point(1), counted()(), [i for i in range(2)], open('kept').read())
try:
    1 / 0
except ZeroDivisionError as error:
    print(error)
";
    let expected = "3.0 Point(x=1) 1 [0, 1] kept\ndivision by zero\n";
    assert_eq!(monty.run(works).await, ScriptOutput::new(0, expected, ""));

    for (source, error) in [
        ("def f():\n    yield 1", "NotImplementedError"),
        ("x = 1\ndel x", "NotImplementedError"),
        ("class A: pass\nclass B(A): pass", "NotImplementedError"),
        (
            "class A:\n    @property\n    def x(self): return 1",
            "NotImplementedError",
        ),
        ("import statistics", "ModuleNotFoundError"),
        ("import numpy", "ModuleNotFoundError"),
        ("dir()", "unknown external function"),
        ("vars()", "unknown external function"),
        ("globals()", "unknown external function"),
        ("x = [input]", "NameError"),
        ("import sys\nsys.exit(1)", "AttributeError"),
        ("import sys\nsys.stdin", "AttributeError"),
        ("import os\nos.environ", "RuntimeError"),
        (
            "try:\n    'a' * (1 << 40)\nexcept MemoryError:\n    print('caught')",
            "MemoryError",
        ),
    ] {
        let output = monty.run(source).await;
        assert_eq!(
            (output.exit_code, output.stdout.as_str()),
            (Some(1), ""),
            "{source}: {output:?}"
        );
        let last = output.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with(error), "{source}: {output:?}");
    }
}

#[tokio::test]
async fn monty_gives_no_right_of_the_system() {
    let Some(monty) = Monty::new() else { return };
    let secret = monty.folder.path().join("secret");
    fs::write(&secret, "canary").unwrap();
    let source = format!(
        "
import os
from pathlib import Path
secret = {secret:?}
def tried(name, action):
    try:
        print(name, action())
    except Exception:
        pass
for path in (secret, '/tmp/..' + secret, '/script/../..' + secret, '/proc/self/root' + secret, '/etc/passwd', '/dev/mem',
             '/proc/self/environ', '/proc/self/mem', '/proc/self/maps', '../main.py', '/script/../main.py'):
    tried(path, lambda: open(path).read())
    tried(path, lambda: Path(path).read_bytes())
    tried(path, lambda: os.stat(path))
    tried(path, lambda: open(path, 'w'))
for path in ('/', '/tmp/..', '/script/..', '/etc', '/proc', '/home', '/root'):
    tried(path, lambda: os.listdir(path))
    tried(path, lambda: list(Path(path).iterdir()))
for path in ('/script/source', '/script/new', '/usr/new', '/new'):
    tried(path, lambda: open(path, 'w'))
    tried(path, lambda: Path(path).write_text('x'))
    tried(path, lambda: os.remove(path))
    tried(path, lambda: os.rename(path, path + '2'))
tried('link', lambda: os.symlink(secret, 'link') or open('link').read())
tried('hard link', lambda: os.link(secret, 'link2') or open('link2').read())
tried('link', lambda: Path('link3').symlink_to(secret) or open('link3').read())
for name in ('PATH', 'HOME', 'CARGO_MANIFEST_DIR'):
    tried(name, lambda: os.environ[name])
    tried(name, lambda: os.getenv(name))
for name in ('fork', 'system', 'popen', 'execv', 'kill', 'posix_spawn', 'open', 'setuid'):
    tried(name, lambda: getattr(os, name))
for name in ('socket', 'subprocess', 'ctypes', 'threading', 'multiprocessing', 'urllib.request', 'http.client', 'signal', 'mmap'):
    tried(name, lambda: exec('import ' + name))
"
    );
    assert_eq!(monty.run(&source).await, ScriptOutput::new(0, "", ""));
    assert_eq!(fs::read_to_string(secret).unwrap(), "canary");
}

#[tokio::test]
async fn what_goes_over_a_limit_of_monty_fails_with_its_reason() {
    let Some(monty) = Monty::new() else { return };
    for (source, code, reason) in [
        ("x = 'a' * (4 << 30)", 1, "MemoryError: memory limit exceeded"),
        (
            "x = []\nwhile True:\n    x.append('a' * (1 << 20))",
            1,
            "MemoryError: memory limit exceeded",
        ),
        (
            "x = []\nwhile True:\n    x = [x, x]",
            1,
            "MemoryError: memory limit exceeded",
        ),
        ("def f(): return f()\nf()", 1, "RecursionError"),
        (
            "for n in range(9):\n    open(str(n), 'wb').write(b'x' * (8 << 20))",
            1,
            "disk write limit",
        ),
        // The parser of the interpreter.
        (
            &("x = ".to_owned() + &vec!["1"; 1_000_000].join("+")),
            134,
            "overflowed its stack",
        ),
        (&"(".repeat(100_000), 1, "SyntaxError"),
    ] {
        let output = monty.run(source).await;
        let shown: String = source.chars().take(80).collect();
        assert_eq!(output.exit_code, Some(code), "{shown}: {output:?}");
        assert!(output.stderr.contains(reason), "{shown}: {output:?}");
    }
    let long = monty.run("for _ in range(1 << 12):\n    print('x' * 65535)").await;
    assert!(long.stdout.ends_with("\n[cut off after 256 KiB: print less]"));
    assert!(long.stdout.len() < 300_000 && long.exit_code == Some(0));
    wait_for(|| !monty.is_running()).await;
}

#[tokio::test]
async fn monty_ends_at_the_time_limit_and_with_its_caller() {
    let Some(monty) = Monty::new() else { return };
    for source in [
        "import time\nprint('begun')\ntime.sleep(300)",
        "print('begun')\nwhile True: pass",
        "print('begun')\nx = 7 ** (7 ** 9)",
    ] {
        let output = monty.run_script(Script::new(source).with_timeout(2 * SECOND)).await;
        // A calculation that is too large for the memory ends earlier.
        assert!(matches!(output.exit_code, None | Some(1)), "{output:?}");
        assert_eq!(output.stdout, "begun\n");
    }
    let cx = context();
    let mut running = Box::pin(monty.runner.run(Script::new("while True: pass"), &cx));
    tokio::select! {
        output = &mut running => panic!("{output:?}"),
        () = wait_for(|| monty.is_running()) => {}
    }
    drop(running);
    wait_for(|| !monty.is_running()).await;
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn monty_ends_when_its_host_is_killed() {
    let Some(mut monty) = Monty::new() else { return };
    if let Ok(memory) = std::env::var(DYING_HOST) {
        monty.runner.memory = memory.parse().unwrap();
        let script = Script::new("while True: pass").with_timeout(2 * SECOND);
        let _ = monty.runner.run(script, &context()).await;
        return;
    }
    let temporary = open_folder();
    let name = "scripts::tests::monty::monty_ends_when_its_host_is_killed";
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(DYING_HOST, monty.runner.memory.to_string())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| monty.is_running()).await;
    host.kill().unwrap();
    host.wait().unwrap();
    wait_for(|| !monty.is_running()).await;
    let left = fs::read_dir(temporary.path()).unwrap().flatten();
    let left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<_> = left.filter(|name| name.starts_with("rockbot-script-")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn a_machine_without_bubblewrap_runs_scripts_in_monty() {
    let Some(monty) = Monty::new() else { return };
    if std::env::var_os(NO_BWRAP).is_none() {
        for program in ["sh", "rm"] {
            let found = find(program, &std::env::var_os("PATH").unwrap()).unwrap();
            symlink(found, monty.folder.path().join(program)).unwrap();
        }
        let name = "scripts::tests::monty::a_machine_without_bubblewrap_runs_scripts_in_monty";
        let mut test = Command::new(std::env::current_exe().unwrap());
        let test = test.args(["--exact", name]).env("PATH", monty.folder.path());
        let output = test.env(NO_BWRAP, "1").output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        return assert!(output.status.success(), "{words}");
    }
    let (tools, part) = offered(Scripts::new());
    let expected = "scripts (monty: no network, no files of the host, no credentials of the host, limited resources, no process \
        left behind; chosen because scripts cannot run here: the program `bwrap` is not installed: install the package \
        `bubblewrap`): no tokens in a request; no model calls of its own";
    assert_eq!((tools, part.as_str()), (1, expected));
}

#[tokio::test]
async fn the_setting_alone_chooses_monty_and_the_model_is_told_the_part_of_python() {
    let Some(monty) = Monty::new() else { return };
    let settings = format!(
        "[Scripts]\nRunner = \"monty\"\nMontyProgram = {:?}\nMemoryMegabytes = 64",
        monty.program()
    );
    let set = declared(Scripts::new(), &settings).unwrap();
    let script = json!({"script": "print(sum(int(n) for n in ROCKBOT_INPUT.split()))", "input_data": "1 2 39"});
    let walls = "[monty: no network, no files of the host, no credentials of the host, limited resources, no process left behind]";
    assert_eq!(answer(&set, script).await, format!("42\n{walls}"));
    let memory = answer(&set, json!({"script": "x = 'a' * (65 << 20)"})).await;
    assert!(memory.contains("MemoryError"), "{memory}");
    let refused = answer(&set, json!({"script": "import numpy", "pip_packages": ["numpy"]})).await;
    assert!(
        refused.starts_with("the script was refused: `monty` has no packages"),
        "{refused}"
    );

    let tool = format!("{:?}", set.tools[0].registration);
    for words in [
        "Runs a script in the part of Python that the guide names",
        "`yield` (build a list",
        "Not available: the script has the modules",
        "Scripts run with `monty`: no network, ",
    ] {
        assert!(tool.contains(words), "{tool}");
    }
    assert!(!tool.contains("standard input"), "{tool}");
}

#[test]
fn a_machine_without_monty_has_the_reason() {
    let settings = "[Scripts]\nRunner = \"monty\"\nMontyProgram = \"rockbot-no-such-monty\"";
    let set = declared(Scripts::new(), settings).unwrap();
    let part = set.costs[0].1.to_string();
    let expected = "scripts (unavailable: scripts cannot run here: the program `rockbot-no-such-monty` is not installed: install \
        the Python package `pydantic-monty-runtime`): off";
    assert_eq!((set.tools.len(), part.as_str()), (0, expected));
}
