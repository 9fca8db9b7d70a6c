//! `rockbot init`: writes a settings file to begin with.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use rockbot::BoxError;

/// The settings file: every line is a comment, so that it changes nothing until it is edited.
const TEMPLATE: &str = include_str!("rockbot.toml");

/// Writes the file, which must not be there yet, and says what to do next.
pub(crate) fn write(file: Option<&Path>) -> Result<(), BoxError> {
    let file = file.ok_or("name the file to write: `rockbot init rockbot.toml`")?;
    let failed = |error: std::io::Error| format!("`{}` cannot be written: {error}", file.display());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .map_err(failed)?;
    written.write_all(TEMPLATE.as_bytes()).map_err(failed)?;
    eprintln!(
        "`{}` is written: set the model in it, then run `rockbot doctor`",
        file.display()
    );
    Ok(())
}
