//! Where a profile's files are, and reading them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{self, Path, PathBuf};

use super::{AgentProfile, AgentProfileDocument};

/// How large a file of a profile may be: 1 MiB.
pub const MAX_PROFILE_FILE_BYTES: u64 = 1 << 20;

/// Where an agent's profile is.
///
/// The names are the operator's own and are followed wherever they lead: an absolute one, `..` or a link may lead
/// out of the folder. Never take them from a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProfileOptions {
    /// The folder that the names below start from. Default `agent`, in the folder in which the process runs.
    pub base_path: PathBuf,
    /// Who the agent is. Required; default `soul.md`.
    pub soul: PathBuf,
    /// How it works here. Required; default `directives.md`.
    pub directives: PathBuf,
    /// How it sounds. Default `style.md`, which may be missing; `None` looks for none.
    pub style: Option<PathBuf>,
    /// What it remembers. Default `memory-rules.md`, which may be missing; `None` looks for none.
    pub memory_rules: Option<PathBuf>,
}

impl Default for AgentProfileOptions {
    fn default() -> Self {
        Self {
            base_path: "agent".into(),
            soul: "soul.md".into(),
            directives: "directives.md".into(),
            style: Some("style.md".into()),
            memory_rules: Some("memory-rules.md".into()),
        }
    }
}

impl AgentProfileOptions {
    /// The files under their usual names in the folder `base_path`.
    pub fn new(base_path: impl Into<PathBuf>) -> Self {
        Self {
            base_path: base_path.into(),
            ..Self::default()
        }
    }
}

impl AgentProfile {
    /// Reads the files that `options` name: soul, directives, memory rules, style. It blocks while it reads.
    ///
    /// # Errors
    ///
    /// Fails when a required file is missing, and when one cannot be read, is not UTF-8 or is larger than
    /// [`MAX_PROFILE_FILE_BYTES`].
    pub fn load(options: &AgentProfileOptions) -> Result<Self, ProfileError> {
        let required = |name, file: &Path| {
            let loaded = load(name, &options.base_path, file)?;
            loaded.ok_or_else(|| ProfileError::Missing {
                path: full_path(&options.base_path, file),
                purpose: purpose(name),
            })
        };
        let optional = |name, file: &Option<PathBuf>| match file {
            Some(file) => load(name, &options.base_path, file),
            None => Ok(None),
        };
        let documents = [
            Some(required(SOUL, &options.soul)?),
            Some(required(DIRECTIVES, &options.directives)?),
            optional(MEMORY_RULES, &options.memory_rules)?,
            optional(STYLE, &options.style)?,
        ];
        Ok(Self::new(documents.into_iter().flatten()))
    }
}

/// A profile that cannot be loaded. Each error names the file's full path and says what it is for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A required file is missing.
    #[error("there is no `{path}`: write one that says {purpose}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it is for.
        purpose: &'static str,
    },
    /// A file is there and cannot be read.
    #[error("cannot read `{path}`, which says {purpose}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What it is for.
        purpose: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A file is not UTF-8 text.
    #[error("`{path}`, which says {purpose}, is not UTF-8 text: save it as UTF-8 ({source})", path = path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// What it is for.
        purpose: &'static str,
        /// Where it stops being UTF-8.
        source: std::str::Utf8Error,
    },
    /// A file is too large.
    #[error(
        "`{path}`, which says {purpose}, is larger than {MAX_PROFILE_FILE_BYTES} bytes: every request begins with it, so \
         shorten it",
        path = path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it is for.
        purpose: &'static str,
    },
}

const SOUL: &str = "soul";
const DIRECTIVES: &str = "directives";
const MEMORY_RULES: &str = "memory-rules";
const STYLE: &str = "style";

/// What the document of this name says.
fn purpose(name: &str) -> &'static str {
    match name {
        SOUL => "who the agent is: its identity, values and character",
        DIRECTIVES => "how the agent works here: its instructions",
        MEMORY_RULES => "when and how the agent remembers",
        _ => "how the agent sounds",
    }
}

/// The document of a file; `None` when there is no such file.
fn load(name: &str, base: &Path, file: &Path) -> Result<Option<AgentProfileDocument>, ProfileError> {
    let path = full_path(base, file);
    let purpose = purpose(name);
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(ProfileError::Unreadable { path, purpose, source }),
    };
    if bytes.len() as u64 > MAX_PROFILE_FILE_BYTES {
        return Err(ProfileError::TooLarge { path, purpose });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(AgentProfileDocument::parse(name, text))),
        Err(error) => Err(ProfileError::NotUtf8 {
            path,
            purpose,
            source: error.utf8_error(),
        }),
    }
}

/// What the file holds, up to one byte more than it may.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_PROFILE_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where `file` is, for people: from the root on, where that can be told.
fn full_path(base: &Path, file: &Path) -> PathBuf {
    let path = base.join(file);
    path::absolute(&path).unwrap_or(path)
}
