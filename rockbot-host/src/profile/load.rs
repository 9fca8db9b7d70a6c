//! Loading a profile from its files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{self, Path, PathBuf};

use super::{AgentProfile, AgentProfileDocument};

/// Maximum size of a profile's file in bytes: 1 MiB.
pub const MAX_PROFILE_FILE_BYTES: u64 = 1 << 20;

/// The location of an agent's profile.
///
/// The names are trusted: an absolute name, `..` or a link may lead out of the folder. Only an
/// operator may set them; never take them from a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentProfileOptions {
    /// Folder that relative names start from. Default `agent` in the working directory of the process.
    pub base_path: PathBuf,
    /// File with the agent's identity, values and character. Required; default `soul.md`.
    pub soul: PathBuf,
    /// File with the agent's instructions. Required; default `directives.md`.
    pub directives: PathBuf,
    /// File with the agent's tone of voice. Default `style.md`, which may be missing; `None` does not
    /// look for one.
    pub style: Option<PathBuf>,
    /// File with rules for the agent's memory. Default `memory-rules.md`, which may be missing;
    /// `None` does not look for a file.
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
    /// Creates options with the default names in the folder `base_path`.
    pub fn new(base_path: impl Into<PathBuf>) -> Self {
        Self {
            base_path: base_path.into(),
            ..Self::default()
        }
    }

    /// Sets the file with the agent's identity, values and character.
    #[must_use]
    pub fn with_soul(mut self, soul: impl Into<PathBuf>) -> Self {
        self.soul = soul.into();
        self
    }

    /// Sets the file with the agent's instructions.
    #[must_use]
    pub fn with_directives(mut self, directives: impl Into<PathBuf>) -> Self {
        self.directives = directives.into();
        self
    }

    /// Sets the file with the agent's tone of voice. Default `style.md`, which may be missing; `None`
    /// does not look for one.
    #[must_use]
    pub fn with_style(mut self, style: Option<PathBuf>) -> Self {
        self.style = style;
        self
    }

    /// Sets the file with rules for the agent's memory. Default `memory-rules.md`, which may be
    /// missing; `None` does not look for a file.
    #[must_use]
    pub fn with_memory_rules(mut self, memory_rules: Option<PathBuf>) -> Self {
        self.memory_rules = memory_rules;
        self
    }
}

impl AgentProfile {
    /// Loads the files that `options` name: soul, directives, memory rules, style. Blocks while it
    /// reads.
    ///
    /// # Errors
    ///
    /// Returns an error if a required file is missing, or if a file cannot be read, is not UTF-8 or
    /// is larger than [`MAX_PROFILE_FILE_BYTES`].
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

/// The error of loading a profile. Its text names the full path of the file and its purpose.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// A required file is missing.
    #[error("there is no `{path}`: write one that says {purpose}", path = path.display())]
    Missing {
        /// Path of the file.
        path: PathBuf,
        /// Purpose of the file.
        purpose: &'static str,
    },
    /// A file exists but cannot be read.
    #[error("cannot read `{path}`, which says {purpose}: {cause}", path = path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Purpose of the file.
        purpose: &'static str,
        /// The cause.
        cause: io::Error,
    },
    /// A file is not UTF-8 text.
    #[error("`{path}`, which says {purpose}, is not UTF-8 text: save it as UTF-8 ({cause})", path = path.display())]
    NotUtf8 {
        /// Path of the file.
        path: PathBuf,
        /// Purpose of the file.
        purpose: &'static str,
        /// The position of the first invalid byte.
        cause: std::str::Utf8Error,
    },
    /// A file is too large.
    #[error(
        "`{path}`, which says {purpose}, is larger than {MAX_PROFILE_FILE_BYTES} bytes: every request begins with it, so \
         shorten it",
        path = path.display()
    )]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Purpose of the file.
        purpose: &'static str,
    },
}

const SOUL: &str = "soul";
const DIRECTIVES: &str = "directives";
const MEMORY_RULES: &str = "memory-rules";
const STYLE: &str = "style";

/// Returns the purpose of the document with this name.
fn purpose(name: &str) -> &'static str {
    match name {
        SOUL => "who the agent is: its identity, values and character",
        DIRECTIVES => "how the agent works here: its instructions",
        MEMORY_RULES => "when and how the agent remembers",
        _ => "how the agent sounds",
    }
}

/// Loads the document of a file; `None` if the file does not exist.
fn load(name: &str, base: &Path, file: &Path) -> Result<Option<AgentProfileDocument>, ProfileError> {
    let path = full_path(base, file);
    let purpose = purpose(name);
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(ProfileError::Unreadable { path, purpose, cause }),
    };
    if bytes.len() as u64 > MAX_PROFILE_FILE_BYTES {
        return Err(ProfileError::TooLarge { path, purpose });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(AgentProfileDocument::parse(name, text))),
        Err(error) => Err(ProfileError::NotUtf8 {
            path,
            purpose,
            cause: error.utf8_error(),
        }),
    }
}

/// Reads a file up to one byte more than the limit, which shows that it is too large without
/// reading all of it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a named pipe would block until another process opens its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_PROFILE_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the absolute path of `file` for error texts, if it can be determined.
fn full_path(base: &Path, file: &Path) -> PathBuf {
    let path = base.join(file);
    path::absolute(&path).unwrap_or(path)
}
