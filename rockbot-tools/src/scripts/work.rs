//! The `/work` folders that sessions keep from one script to the next.
//!
//! The folder of a session is bound into the sandbox of each of its scripts. The system limits the
//! size of single files; the whole is measured while a script runs, and a script that goes over the
//! quota is ended. A script decides about every name and link in its folder, so nothing there is
//! opened or followed, and the system's `rm`, which no depth of folders overflows, removes it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rockbot_core::config::Section;
use rockbot_core::process::Command;
use rockbot_core::{BoxError, CallContext, Digest};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::runner::{ScriptError, WorkFile};
use super::system::{UNPRIVILEGED, is_root};

/// Place of the folder inside the sandbox.
pub(super) const WORK: &str = "/work";

/// Folder of the sessions' folders below the data folder.
const FOLDER: &str = "script-work";

/// The folder of a host that root runs: scripts run as another user, who reads no data folder.
const FOLDER_OF_ROOT: &str = "/var/lib/rockbot/script-work";

/// Maximum number of files and folders in a folder, and of folders in each other.
const MAX_ENTRIES: usize = 1000;
const MAX_DEPTH: usize = 16;

/// Maximum number of removals of so many files after a script; then all files of the session go.
const MAX_ROUNDS: usize = 50;

/// Maximum number of sessions with a folder, and the time that an unused one is kept.
const MAX_SESSIONS: usize = 1000;
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Pause between two measurements of a folder.
const PAUSE: Duration = Duration::from_millis(200);

/// Time limit for removing files.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// The folders of all sessions.
#[derive(Debug)]
pub(super) struct WorkFolders {
    root: PathBuf,
    /// Maximum length of all files of a session, in bytes.
    quota: u64,
}

/// The folder of one session, for one script.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    quota: u64,
    /// Time since 1970 after which the script changed what changed.
    since: Duration,
}

/// The contents of a folder that is within its quota.
#[derive(Debug, Default)]
struct Contents {
    /// The files that changed since the script began, the latest first.
    written: Vec<WorkFile>,
}

impl WorkFolders {
    /// Reads the settings `WorkMegabytes` and `WorkFolder`; `None` without a quota.
    pub(super) fn read(section: &Section<'_>, data: Option<&Path>) -> Result<Option<Self>, BoxError> {
        let megabytes = section.get_or("WorkMegabytes", 0_u64)?;
        let set = section.get::<PathBuf>("WorkFolder")?;
        if megabytes > 10_240 {
            return Err("`Scripts.WorkMegabytes` is at most 10240".into());
        }
        if megabytes == 0 {
            return Ok(None);
        }
        let root = match set {
            Some(set) => data.map(|data| data.join(&set)).unwrap_or(set),
            None if is_root() => FOLDER_OF_ROOT.into(),
            None => data
                .ok_or("there is no data folder: set `Scripts.WorkFolder`")?
                .join(FOLDER),
        };
        Ok(Some(Self::new(root, megabytes << 20)))
    }

    pub(super) fn new(root: PathBuf, quota: u64) -> Self {
        Self { root, quota }
    }

    /// Returns the folder of the session of a call, which is created if it is not there.
    pub(super) async fn open(&self, cx: &CallContext) -> Result<WorkFolder, ScriptError> {
        let name = Digest::of([cx.principal().as_str(), cx.session().as_str()]).short();
        let path = self.root.join(name);
        let old = self.provide(&path).map_err(|error| unavailable(&error))?;
        // By the clock of the file system, which stands still for milliseconds: the script takes longer
        // to begin.
        let opened = fs::symlink_metadata(&path).map_err(|error| unavailable(&error))?;
        let folder = WorkFolder {
            since: changed_at(&opened),
            quota: self.quota,
            path,
        };
        for name in old {
            loosen(&self.root.join(&name)).await;
            remove(&self.root, vec![name])
                .await
                .map_err(|error| unavailable(&error))?;
        }
        // A process that outlived the last script may have written more.
        if folder.contents().await.is_none() {
            folder.empty().await?;
        }
        Ok(folder)
    }

    /// Creates a folder, and returns the names of the folders that are to be removed.
    fn provide(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        DirBuilder::new().recursive(true).mode(0o711).create(&self.root)?;
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) if is_root() => chown(folder, Some(UNPRIVILEGED), Some(UNPRIVILEGED))?,
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // The script may have closed it to its owner.
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        // The age of a folder counts from its last use.
        File::open(folder)?.set_modified(SystemTime::now())?;
        let mut folders = BTreeSet::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            // Another script may have removed it meanwhile.
            if let Ok(used) = entry.metadata().and_then(|found| found.modified()) {
                folders.insert((used, entry.file_name()));
            }
        }
        let surplus = folders.len().saturating_sub(MAX_SESSIONS);
        let is_old = |used: SystemTime| used.elapsed().is_ok_and(|age| age > RETENTION);
        let folders = folders.into_iter().enumerate();
        let old = folders.filter(|(index, (used, _))| *index < surplus || is_old(*used));
        Ok(old.map(|(_, (_, name))| name).collect())
    }
}

impl WorkFolder {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the folder is over its quota.
    pub(super) async fn is_full(&self) {
        while self.contents().await.is_some() {
            sleep(PAUSE).await;
        }
    }

    /// Returns the files that the script has written.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is over its quota. Then the script's files are removed.
    pub(super) async fn written(&self) -> Result<Vec<WorkFile>, ScriptError> {
        match self.contents().await {
            Some(contents) => Ok(contents.written),
            None => Err(self.withdraw().await),
        }
    }

    /// Removes what a script wrote that went over the quota, and returns the error of it.
    pub(super) async fn withdraw(&self) -> ScriptError {
        // The system takes a moment to end all processes of a sandbox.
        sleep(PAUSE).await;
        for _ in 0..MAX_ROUNDS {
            let changed = self.changed().unwrap_or_default();
            if changed.is_empty() {
                break;
            }
            if remove(&self.path, changed.clone()).await.is_ok() {
                continue;
            }
            // It changes what is opened: which files are the script's is unknown from here on.
            loosen(&self.path).await;
            if let Err(error) = remove(&self.path, changed).await {
                return unavailable(&error);
            }
            break;
        }
        if self.contents().await.is_none()
            && let Err(error) = self.empty().await
        {
            return error;
        }
        ScriptError::Refused(format!(
            "its files in {WORK} went over {} MiB or {MAX_ENTRIES} files; it was ended, and what it had written there is \
             removed",
            self.quota >> 20
        ))
    }

    /// Returns the first names in the folder that the script changed, or in which it did.
    fn changed(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let found = entry.metadata()?;
            // A folder that is too large was within the quota before the script.
            let is_changed = |contents: Option<Contents>| contents.is_none_or(|within| !within.written.is_empty());
            if changed_at(&found) > self.since
                || found.is_dir() && is_changed(read(&entry.path(), self.quota, self.since))
            {
                names.push(entry.file_name());
            }
            // More would not fit a command line.
            if names.len() == MAX_ENTRIES {
                break;
            }
        }
        Ok(names)
    }

    /// Removes everything from the folder.
    async fn empty(&self) -> Result<(), ScriptError> {
        let (Some(root), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Ok(());
        };
        loosen(&self.path).await;
        remove(root, vec![name.to_owned()])
            .await
            .map_err(|error| unavailable(&error))?;
        let root = WorkFolders::new(root.to_owned(), self.quota);
        root.provide(&self.path).map(drop).map_err(|error| unavailable(&error))
    }

    /// Returns the contents; `None` if they are over the quota, or cannot be measured.
    async fn contents(&self) -> Option<Contents> {
        let (path, quota, since) = (self.path.clone(), self.quota, self.since);
        spawn_blocking(move || read(&path, quota, since)).await.ok().flatten()
    }
}

/// Returns the contents of a folder; `None` if they are over the quota, or cannot be measured.
fn read(folder: &Path, quota: u64, since: Duration) -> Option<Contents> {
    let mut written = Vec::new();
    let mut bytes = 0;
    let mut entries = 0;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((at, depth)) = folders.pop() {
        // A running script may put a link in its place: names count once the script has ended.
        let listed = match fs::read_dir(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listed => listed.ok()?,
        };
        for entry in listed {
            let entry = entry.ok()?;
            let Ok(found) = entry.metadata() else { continue };
            entries += 1;
            bytes += found.len();
            if entries > MAX_ENTRIES || bytes > quota || depth >= MAX_DEPTH {
                return None;
            }
            if found.is_dir() {
                folders.push((entry.path(), depth + 1));
            } else if found.is_file() && changed_at(&found) > since {
                let path = entry.path().strip_prefix(folder).ok()?.to_string_lossy().into_owned();
                written.push((changed_at(&found), WorkFile::new(path, found.len())));
            }
        }
    }
    written.sort_by(|(a, _), (b, _)| b.cmp(a));
    let written = written.into_iter().map(|(_, file)| file).collect();
    Some(Contents { written })
}

/// Returns the time of the last change, which no program can set.
fn changed_at(metadata: &fs::Metadata) -> Duration {
    let seconds = u64::try_from(metadata.ctime()).unwrap_or_default();
    Duration::new(seconds, u32::try_from(metadata.ctime_nsec()).unwrap_or_default())
}

/// Opens everything in a folder to its owner, who can then remove it. Links are not followed.
async fn loosen(folder: &Path) {
    if is_root() || fs::set_permissions(folder, Permissions::from_mode(0o700)).is_err() {
        return;
    }
    let opening = Command::new("chmod").args(["-R", "u+rwX", "."]).current_dir(folder);
    // What stays closed is an error of the removal.
    let _ = opening.output(REMOVAL_LIMIT).await;
}

/// Removes entries of a folder with everything in them.
async fn remove(folder: &Path, names: Vec<OsString>) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let paths = names.into_iter().map(|name| Path::new(".").join(name));
    let removal = Command::new("rm").args(["-rf", "--"]).args(paths).current_dir(folder);
    let output = removal.output(REMOVAL_LIMIT).await?;
    if output.is_success() {
        return Ok(());
    }
    Err(io::Error::other(
        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    ))
}

fn unavailable(error: &io::Error) -> ScriptError {
    ScriptError::Unavailable(format!("the folder {WORK} of the session cannot be used: {error}"))
}
