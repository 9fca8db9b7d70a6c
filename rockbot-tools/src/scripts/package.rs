//! Names of packages that a script asks for.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a requirement, in bytes.
const MAX_LEN: usize = 100;

/// A package of the Python package index that a script imports: a name, or `name==version`.
///
/// Nothing else is one: no option of an installer, no path, no URL, no range of versions.
///
/// ```
/// use rockbot_tools::scripts::Package;
///
/// let package: Package = " Ruamel.YAML == 0.18.6 ".parse()?;
/// assert_eq!(package.to_string(), "ruamel-yaml==0.18.6");
/// assert!("--index-url=https://evil.example".parse::<Package>().is_err());
/// # Ok::<(), rockbot_tools::scripts::PackageError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Package {
    name: String,
    version: Option<String>,
}

/// An error for a text that is no [`Package`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a package: write a name such as `numpy`, or `name==version`")]
pub struct PackageError(String);

impl FromStr for Package {
    type Err = PackageError;

    fn from_str(text: &str) -> Result<Self, PackageError> {
        let (name, version) = match text.split_once("==") {
            Some((name, version)) => (name.trim(), Some(version.trim())),
            None => (text.trim(), None),
        };
        if text.len() > MAX_LEN || !is_name(name) || !version.is_none_or(is_version) {
            return Err(PackageError(text.chars().take(MAX_LEN).collect()));
        }
        Ok(Self {
            name: normalized(name),
            version: version.map(str::to_owned),
        })
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}=={version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Returns `true` for a name by PEP 508.
fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    name.chars().all(is_inner) && ends_well(name.chars().next()) && ends_well(name.chars().last())
}

/// Returns `true` for the characters of a version by PEP 440.
fn is_version(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-+!".contains(c))
}

/// Returns the name as package indexes compare it: `Ruamel.YAML` and `ruamel-yaml` are one package.
fn normalized(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '.' | '_' | '-' if normal.ends_with('-') => {}
            '.' | '_' | '-' => normal.push('-'),
            c => normal.push(c.to_ascii_lowercase()),
        }
    }
    normal
}
