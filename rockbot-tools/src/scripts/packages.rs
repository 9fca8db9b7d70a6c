//! Packages of scripts: installed in a step of their own, from wheels alone, and kept by set.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rockbot_core::process::Command;
use rockbot_core::{BoxError, Digest, ExposeSecret, Secret};
use tokio::time::{sleep, timeout};

use super::package::Package;
use super::runner::ScriptError;
use super::system::find;

/// Time limit for installing the packages of a script.
pub(super) const INSTALL_LIMIT: Duration = Duration::from_secs(120);

/// Maximum number of sets that are kept.
const MAX_SETS: usize = 20;

/// Minimum age of a set that is removed: no script that uses it still runs.
const MIN_AGE: Duration = Duration::from_secs(600);

/// Variables of the way to an index.
const NETWORK: [&str; 7] = [
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// End of the name of a set that is being installed.
const PARTIAL: &str = "partial";

/// The sets of packages that were installed.
#[derive(Debug)]
pub(super) struct PackageCache {
    /// Folder of the sets; `None` if there is no place for one.
    pub(super) folder: Option<PathBuf>,
    /// URL of an index, or a folder of wheels. Default: the index of the installer.
    pub(super) index: Option<Secret>,
}

impl PackageCache {
    /// Returns the folder of a set of packages for an interpreter, and installs it if it is not
    /// there; `None` for no packages.
    pub(super) async fn folder_of(&self, packages: &[Package], python: &Path) -> Result<Option<PathBuf>, ScriptError> {
        if packages.is_empty() {
            return Ok(None);
        }
        let mut set: Vec<_> = packages.iter().map(Package::to_string).collect();
        set.sort();
        set.dedup();
        let folder = match timeout(INSTALL_LIMIT, self.provide(&set, python)).await {
            Ok(provided) => provided.map_err(|error| ScriptError::Packages(error.to_string()))?,
            Err(_) => {
                let reason = format!("it timed out after {} s", INSTALL_LIMIT.as_secs());
                return Err(ScriptError::Packages(reason));
            }
        };
        // The age of a set counts from its last use. Without it a set is removed too early, and
        // installed again.
        let _ = File::open(&folder).and_then(|used| used.set_modified(SystemTime::now()));
        Ok(Some(folder))
    }

    async fn provide(&self, set: &[String], python: &Path) -> Result<PathBuf, BoxError> {
        let cache = self.open()?;
        let folder = cache.join(self.key(set, python));
        if !folder.is_dir() {
            let _lock = lock(&cache).await?;
            // Another script may have installed it meanwhile.
            if !folder.is_dir() {
                sweep(&cache)?;
                self.install(&folder, set, python).await?;
            }
        }
        Ok(folder)
    }

    /// Returns the name of a set: packages for another version of Python are others.
    fn key(&self, set: &[String], python: &Path) -> String {
        let python = python.canonicalize().unwrap_or_else(|_| python.to_owned());
        let index = self.index.as_ref().map_or("", |index| index.expose_secret());
        let parts = [&*python.to_string_lossy(), index].map(str::to_owned);
        Digest::of(parts.iter().chain(set)).short()
    }

    /// Creates the folder, readable by the user that scripts run as.
    fn open(&self) -> io::Result<PathBuf> {
        let advice = "there is no folder for them: set `Scripts.PackageFolder`";
        let folder = self.folder.clone().ok_or_else(|| io::Error::other(advice))?;
        DirBuilder::new().recursive(true).mode(0o755).create(&folder)?;
        Ok(folder)
    }

    /// Installs a set of packages. The folder is there when it is complete.
    async fn install(&self, folder: &Path, set: &[String], python: &Path) -> Result<(), BoxError> {
        let partial = folder.with_extension(PARTIAL);
        DirBuilder::new().mode(0o755).create(&partial)?;
        let output = self.installer(python, &partial).args(set).output(INSTALL_LIMIT).await?;
        if output.is_success() {
            return Ok(fs::rename(&partial, folder)?);
        }
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(if words.contains("No module named pip") {
            "neither `uv` nor `pip` is installed: install `uv`".into()
        } else {
            words.into()
        })
    }

    /// Returns the command that installs packages into a folder, without its last arguments: the
    /// packages.
    fn installer(&self, python: &Path, folder: &Path) -> Command {
        // All users may read the installed packages, such as the user that scripts run as.
        let shell = ["-c", "umask 022; exec \"$@\"", "sh"];
        let mut command = configured(Command::new("sh").args(shell)).max_stderr(2_000);
        command = match find("uv", &std::env::var_os("PATH").unwrap_or_default()) {
            Some(uv) => command
                .arg(uv)
                .args(["pip", "install", "--quiet", "--python"])
                .arg(python),
            None => {
                let module = [
                    "-I",
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-input",
                ];
                command.arg(python).args(module)
            }
        };
        command = self.with_index(command).args(["--only-binary", ":all:", "--target"]);
        command.arg(folder).arg("--")
    }

    /// Sets the source of packages: a URL by variables, since it may have a password.
    fn with_index(&self, command: Command) -> Command {
        let Some(index) = &self.index else {
            return command;
        };
        if Path::new(index.expose_secret()).is_dir() {
            command.args(["--no-index", "--find-links", index.expose_secret()])
        } else {
            command
                .env("PIP_INDEX_URL", index.clone())
                .env("UV_DEFAULT_INDEX", index.clone())
        }
    }
}

/// Passes on the variables that configure an installer and its network.
fn configured(mut command: Command) -> Command {
    for (name, value) in std::env::vars_os() {
        let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else {
            continue;
        };
        let upper = name.to_ascii_uppercase();
        if ["PIP_", "UV_"].iter().any(|start| upper.starts_with(start)) || NETWORK.contains(&&*upper) {
            command = command.env(name, value);
        }
    }
    command
}

/// Waits for the right to change the cache, which processes share.
async fn lock(cache: &Path) -> io::Result<File> {
    let lock = File::options().create(true).append(true).open(cache.join("lock"))?;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::WouldBlock) => sleep(Duration::from_millis(100)).await,
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes the remains of installations that did not come to their end, and the sets that were
/// not used for the longest time.
fn sweep(cache: &Path) -> io::Result<()> {
    let mut sets = Vec::new();
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        if entry.path().extension().is_some_and(|end| end == PARTIAL) {
            fs::remove_dir_all(entry.path())?
        } else {
            sets.push((entry.metadata()?.modified()?, entry.path()))
        }
    }
    sets.sort();
    let surplus = (sets.len() + 1).saturating_sub(MAX_SETS);
    for (used, set) in sets.into_iter().take(surplus) {
        if used.elapsed().is_ok_and(|age| age >= MIN_AGE) {
            fs::remove_dir_all(set)?;
        }
    }
    Ok(())
}
