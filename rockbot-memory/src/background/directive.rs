//! Directives: instructions of background work that operators may replace by a file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Maximum size of a directive, in bytes.
const MAX_DIRECTIVE: u64 = 64 << 10;

/// Reads the directive from a file, or returns the default if the file is missing, blank or
/// unreadable.
pub(crate) async fn directive(path: Option<PathBuf>, default: &str) -> String {
    let Some(path) = path else {
        return default.to_owned();
    };
    let read = tokio::task::spawn_blocking(move || {
        let text = read(&path);
        text.inspect_err(|error| {
            tracing::warn!(path = %path.display(), %error, "a directive cannot be read; the built-in one is used");
        })
    });
    let text = read.await.ok().and_then(Result::ok).flatten();
    text.unwrap_or_else(|| default.to_owned())
}

fn read(path: &Path) -> Result<Option<String>, std::io::Error> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    if file.take(MAX_DIRECTIVE + 1).read_to_string(&mut text)? as u64 > MAX_DIRECTIVE {
        return Err(std::io::Error::other("it has more than 64 KiB; shorten it"));
    }
    let text = text.trim_start_matches('\u{feff}');
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}
