//! The folders that sessions keep from one script to the next.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rockbot_core::CallContext;
use rockbot_core::tool::Effect;
use tempfile::TempDir;

use super::super::local::Isolation;
use super::super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner as _, WorkFile};
use super::super::tool::ScriptState;
use super::super::work::WorkFolders;
use super::{Local, sandbox};

const MIB: u64 = 1 << 20;

const OVER: &str = "the script was refused: its files in /work went over 1 MiB or 1000 files; it was ended, and what it had \
    written there is removed";

/// A sandbox whose sessions keep 1 MiB each, and the folder of their folders.
struct Kept {
    local: Local,
    folder: TempDir,
}

impl Kept {
    async fn new() -> Option<Self> {
        sandbox().await?;
        let folder = tempfile::tempdir().unwrap();
        // The user that scripts of root run as has to get there.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let mut local = Local::new(Isolation::Bubblewrap);
        local.runner.work = Some(WorkFolders::new(folder.path().join("work"), MIB));
        Some(Self { local, folder })
    }

    async fn run_in(&self, session: &str, script: &str) -> Result<ScriptOutput, ScriptError> {
        let script = Script::new(script).with_timeout(Duration::from_secs(60));
        self.local.runner.run(script, &CallContext::new(session)).await
    }

    async fn run(&self, script: &str) -> Result<ScriptOutput, ScriptError> {
        self.run_in("s", script).await
    }

    /// Asserts that a script of the session prints the names in `/work`.
    #[track_caller]
    fn assert_names(found: Result<ScriptOutput, ScriptError>, expected: &str) {
        let output = found.unwrap();
        assert_eq!(
            (output.stdout.trim(), output.exit_code),
            (expected, Some(0)),
            "{output:?}"
        );
    }

    fn folders(&self) -> Vec<std::path::PathBuf> {
        let listed = fs::read_dir(self.folder.path().join("work")).unwrap();
        listed.map(|entry| entry.unwrap().path()).collect()
    }
}

const NAMES: &str = "import os; print(sorted(os.listdir('/work')))";

#[tokio::test]
async fn a_session_finds_its_files_again_and_no_other_does() {
    let Some(kept) = Kept::new().await else { return };
    let output = kept.run("open('/work/a.txt', 'w').write('four')").await.unwrap();
    assert_eq!(output.files, [WorkFile::new("a.txt", 4)]);
    let script = "import os\nos.makedirs('/work/b')\nopen('/work/b/c', 'w').write(open('/work/a.txt').read() * 2)";
    let output = kept.run(script).await.unwrap();
    assert_eq!(output.files, [WorkFile::new("b/c", 8)]);
    Kept::assert_names(kept.run(NAMES).await, "['a.txt', 'b']");
    Kept::assert_names(kept.run_in("another", NAMES).await, "[]");
    let stranger = CallContext::new("s").with_principal("eve".into());
    let found = kept.local.runner.run(Script::new(NAMES), &stranger).await;
    Kept::assert_names(found, "[]");
    assert_eq!(kept.folders().len(), 3);
}

#[tokio::test]
async fn what_goes_over_the_quota_is_removed_and_the_rest_stays() {
    let Some(kept) = Kept::new().await else { return };
    kept.run("open('/work/kept', 'w').write('four')").await.unwrap();
    let long = "for n in range(3): open(f'/work/{n}', 'wb').write(bytes(400_000))";
    let sparse = "open('/work/sparse', 'wb').truncate(2 << 20)";
    let many = "for n in range(2000): open(f'/work/{n}', 'w')";
    let deep = "import os\nos.chdir('/work')\nfor n in range(5000): os.mkdir('d'); os.chdir('d')";
    let endless = "import time\nopen('/work/long', 'wb').write(bytes(2 << 20))\ntime.sleep(60)";
    for script in [long, sparse, many, deep, endless] {
        let begun = std::time::Instant::now();
        let refused = kept.run(script).await.unwrap_err();
        assert_eq!(refused.to_string(), OVER, "{script}");
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "a script over its quota is ended at once"
        );
        Kept::assert_names(kept.run(NAMES).await, "['kept']");
    }
    kept.local.is_gone().await;
}

#[tokio::test]
async fn no_link_and_no_right_leads_out() {
    let Some(kept) = Kept::new().await else { return };
    let secret = kept.folder.path().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "canary").unwrap();
    let script = format!(
        "import os\nos.symlink({secret:?}, '/work/link')\nos.symlink('/', '/work/root')\nos.mkfifo('/work/pipe')\n\
         os.mkdir('/work/closed'); open('/work/closed/x', 'w').write('x'); os.chmod('/work/closed', 0); os.chmod('/work', 0)"
    );
    let written = kept.run(&script).await;
    let is_refused = written.is_err();
    assert!(
        is_refused || written.unwrap().files == [WorkFile::new("closed/x", 1)],
        "a host that root runs reads what is closed"
    );
    let names = if is_refused {
        "[]"
    } else {
        "['closed', 'link', 'pipe', 'root']"
    };
    Kept::assert_names(kept.run(NAMES).await, names);
    let over = "import os\nfor n in range(2000): os.symlink('/etc', f'/work/{n}')";
    assert_eq!(kept.run(over).await.unwrap_err().to_string(), OVER);
    assert_eq!(fs::read_to_string(secret.join("key")).unwrap(), "canary");
}

#[tokio::test]
async fn folders_that_are_long_unused_are_removed() {
    let Some(kept) = Kept::new().await else { return };
    kept.run_in("old", "open('/work/a', 'w')").await.unwrap();
    let week = Duration::from_secs(8 * 24 * 60 * 60);
    let used = |folder: &Path| {
        fs::File::open(folder)
            .unwrap()
            .set_modified(SystemTime::now() - week)
            .unwrap()
    };
    kept.folders().iter().for_each(|folder| used(folder));
    kept.run_in("new", "open('/work/a', 'w')").await.unwrap();
    assert_eq!(kept.folders().len(), 1);
    Kept::assert_names(kept.run_in("old", NAMES).await, "[]");
}

#[tokio::test]
async fn the_tool_of_such_a_runner_is_mutating_and_names_the_files() {
    let Some(kept) = Kept::new().await else { return };
    let Kept { local, folder } = kept;
    let tool = ScriptState::new(Arc::new(local.runner), Duration::from_secs(30));
    let tool = tool.into_tool(super::super::Guarantees::ALL);
    assert_eq!(tool.registration.effect, Effect::Mutating);
    let arguments = serde_json::json!({"script": "open('/work/a\\n[b]', 'w').write('x')"}).to_string();
    let request = rockbot_core::tool::ToolInvokeRequest::new("c1", tool.registration.name.clone(), arguments);
    let answer = tool.executor.execute(request, &super::context()).await.unwrap();
    let text = answer.content.text().into_owned();
    assert!(
        text.starts_with("(no output)\nWritten to /work: a [b] (1 bytes)\n[bubblewrap: "),
        "{text}"
    );
    drop(folder);
}
