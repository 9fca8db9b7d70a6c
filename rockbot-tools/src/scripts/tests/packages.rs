//! Packages: their names, and their installation from a folder of wheels.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rockbot_core::Secret;

use super::super::package::Package;
use super::super::packages::PackageCache;
use super::super::runner::{Script, ScriptError, ScriptRunner as _};
use super::{Local, context, sandbox, skip};

/// Writes a wheel and a source package: arguments are the folder, and triples of name, version
/// and source.
const WHEELS: &str = "
import sys, tarfile, io, zipfile
folder, *rest = sys.argv[1:]
for name, version, source in zip(*[iter(rest)] * 3):
    info = f'{name}-{version}.dist-info'
    with zipfile.ZipFile(f'{folder}/{name}-{version}-py3-none-any.whl', 'w') as wheel:
        wheel.writestr(f'{name}.py', source)
        wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')
        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        wheel.writestr(f'{info}/RECORD', f'{name}.py,,\\n{info}/METADATA,,\\n{info}/WHEEL,,\\n{info}/RECORD,,\\n')
with tarfile.open(f'{folder}/sourceonly-1.0.tar.gz', 'w:gz') as archive:
    setup = b'open(\"/tmp/rockbot-test-setup-ran\", \"w\")\\nfrom setuptools import setup\\nsetup(name=\"sourceonly\", version=\"1.0\")\\n'
    entry = tarfile.TarInfo('sourceonly-1.0/setup.py')
    entry.size = len(setup)
    archive.addfile(entry, io.BytesIO(setup))
";

fn packages(names: &[&str]) -> Vec<Package> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[test]
fn names_and_exact_versions_are_packages() {
    for (text, package) in [
        ("numpy", "numpy"),
        ("  Flask ", "flask"),
        ("zope.interface", "zope-interface"),
        ("ruamel__yaml==0.18.6", "ruamel-yaml==0.18.6"),
        ("torch == 2.4.0+cpu", "torch==2.4.0+cpu"),
        ("x==1!2.0.post1", "x==1!2.0.post1"),
    ] {
        assert_eq!(text.parse::<Package>().unwrap().to_string(), package);
    }
}

#[test]
fn nothing_else_is_a_package() {
    let long = "x".repeat(101);
    for text in [
        "",
        " ",
        "-r",
        "--index-url=https://evil.example",
        "--index-url",
        "-e.",
        ".",
        "..",
        "./x",
        "/etc/passwd",
        "../x",
        "a/b",
        "file:///x",
        "git+https://evil.example/x",
        "https://evil.example/x.whl",
        "x @ https://evil.example",
        "x[extra]",
        "x>=1",
        "x~=1",
        "x!=1",
        "x===1",
        "x==",
        "x==*",
        "x==1.*",
        "x== ../y",
        "x==1;os_name",
        "x; rm -rf /",
        "x && id",
        "$(id)",
        "`id`",
        "x|id",
        "a b",
        "a,b",
        "x\ny",
        "x\0",
        "x==1 --pre",
        "x==1\n--pre",
        "-x",
        "x-",
        "_x",
        "ñ",
        "x==v1",
        &long,
    ] {
        assert!(text.parse::<Package>().is_err(), "{text:?}");
    }
}

/// A sandbox whose packages come from wheels of this test, with its folders; `None` where there
/// is no installer.
pub(super) async fn shop() -> Option<(Local, tempfile::TempDir)> {
    let mut local = sandbox().await?;
    let python = "/usr/bin/python3";
    let has_pip = Command::new(python).args(["-m", "pip", "--version"]).output();
    if !has_pip.is_ok_and(|output| output.status.success()) && Command::new("uv").arg("--version").output().is_err() {
        skip("neither `uv` nor `pip` of the system is installed");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let wheels = folder.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    let contents = [
        "cats",
        "1.0",
        "sound = 'purr'",
        "cats",
        "2.0",
        "sound = 'meow'",
        "dogs",
        "1.0",
        "import cats\nsound = 'woof'",
    ];
    let made = Command::new(python)
        .args(["-c", WHEELS])
        .arg(&wheels)
        .args(contents)
        .status()
        .unwrap();
    assert!(made.success());
    local.runner.packages = PackageCache {
        folder: Some(folder.path().join("cache")),
        index: Some(Secret::from(wheels.display().to_string())),
    };
    Some((local, folder))
}

async fn run_with(local: &Local, names: &[&str], script: &str) -> Result<String, ScriptError> {
    let script = Script::new(script).with_packages(packages(names));
    let output = local.runner.run(script, &context()).await?;
    assert_eq!(output.stderr, "");
    Ok(output.stdout)
}

fn sets(folder: &Path) -> usize {
    let entries = fs::read_dir(folder.join("cache")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}

#[tokio::test]
async fn packages_are_installed_once_and_only_read() {
    let Some((local, folder)) = shop().await else { return };
    let script = "import cats\nprint(cats.sound, cats.__file__)";
    for (names, expected) in [
        (vec!["cats"], "meow /packages/cats.py\n"),
        (vec!["Cats == 1.0"], "purr /packages/cats.py\n"),
        (vec!["cats==1.0", "dogs"], "purr /packages/cats.py\n"),
    ] {
        assert_eq!(run_with(&local, &names, script).await.unwrap(), expected);
    }
    assert_eq!(sets(folder.path()), 3);
    // Without the wheels: what is there is not installed again.
    fs::remove_dir_all(folder.path().join("wheels")).unwrap();
    let other_order = ["dogs", "cats==1.0", "dogs"];
    let write = "import dogs, subprocess, sys\n\
        try:\n    open('/packages/x', 'w')\nexcept OSError as error:\n    print(error.strerror)\n\
        sys.stdout.flush()\nsubprocess.run([sys.executable, '-c', 'import dogs; print(dogs.sound)'])";
    assert_eq!(
        run_with(&local, &other_order, write).await.unwrap(),
        "Read-only file system\nwoof\n"
    );
    assert_eq!(sets(folder.path()), 3);
}

#[tokio::test]
async fn packages_that_are_not_there_or_have_no_wheel_are_an_error() {
    let Some((local, folder)) = shop().await else { return };
    for name in ["unicorns", "sourceonly", "cats==9.9"] {
        let error = run_with(&local, &[name], "print(1)").await.unwrap_err();
        let words = error.to_string();
        assert!(words.starts_with("the packages could not be installed: "), "{words}");
        assert!(words.contains(name), "{words}");
    }
    assert!(!Path::new("/tmp/rockbot-test-setup-ran").exists());
    // The next installation clears up.
    run_with(&local, &["cats"], "print(1)").await.unwrap();
    assert_eq!(sets(folder.path()), 1);
    assert_eq!(run_with(&local, &[], "print(1)").await.unwrap(), "1\n");
}

#[tokio::test]
async fn scripts_that_need_one_set_at_once_install_it_once() {
    let Some((local, folder)) = shop().await else { return };
    let script = "import cats\nprint(cats.sound)";
    let [first, second] = [run_with(&local, &["cats"], script), run_with(&local, &["cats"], script)];
    let (first, second) = tokio::join!(first, second);
    assert_eq!(
        (first.unwrap(), second.unwrap()),
        ("meow\n".to_owned(), "meow\n".to_owned())
    );
    assert_eq!(sets(folder.path()), 1);
}

#[tokio::test]
async fn the_sets_that_are_not_used_are_removed() {
    let Some((local, folder)) = shop().await else { return };
    let cache = folder.path().join("cache");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    for number in 0..25 {
        let set = cache.join(format!("set{number}"));
        fs::create_dir_all(&set).unwrap();
        fs::File::open(&set).unwrap().set_modified(old).unwrap();
    }
    run_with(&local, &["cats"], "import cats").await.unwrap();
    assert_eq!(sets(folder.path()), 20);
    run_with(&local, &["cats"], "import cats").await.unwrap();
}

#[tokio::test]
async fn a_runner_without_a_folder_says_what_to_set() {
    let Some(sandbox) = sandbox().await else { return };
    let error = run_with(&sandbox, &["cats"], "print(1)").await.unwrap_err();
    let expected = "the packages could not be installed: there is no folder for them: set `Scripts.PackageFolder`";
    assert_eq!(error.to_string(), expected);
}
