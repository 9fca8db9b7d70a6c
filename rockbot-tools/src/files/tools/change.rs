//! The tools that change files: `file_write`, `file_edit`, `file_delete`.

use std::borrow::Cow;

use rockbot_core::CallContext;
use rockbot_core::tool::{ToolError, ToolState};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{FileState, failed, invalid, present, text_of};
use crate::files::folder::{MAX_FILE, Version};
use crate::files::nearest;
use crate::files::path::FilePath;
use crate::files::text::{Encoding, decode, encode};

/// Writes a text file: a new one, or in place of one that you have read to its end.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FileWrite {
    /// The path, relative to the folder. Missing folders are created.
    path: String,
    /// The whole text.
    content: String,
}

pub(super) async fn write(
    this: ToolState<FileState>,
    arguments: FileWrite,
    cx: CallContext,
) -> Result<String, ToolError> {
    let path = FilePath::of_change(&arguments.path).map_err(|error| invalid(&error))?;
    let _changing = this.changing.clone().lock_owned().await;
    let of_file = path.clone();
    let before = this
        .blocking(move |folder| folder.read(&of_file).map_err(|error| failed(&of_file, &error)))
        .await?;
    let mut encoding = Encoding::default();
    if let Some(before) = &before {
        let (text, own) = decode(&before.bytes).unwrap_or_default();
        encoding = own;
        let lines = text.lines().count();
        if !before.bytes.is_empty() && !this.ledger.has_all(&cx, &path, &before.digest, lines) {
            return Err(ToolError::execution_failed(format!(
                "not written: `{path}` exists, and you have not read all of its present version ({lines} lines). \
                 Read it to its end with file_read, or change a part with file_edit"
            )));
        }
    }
    let length = arguments.content.lines().count();
    let version = store(&this, &path, &arguments.content, encoding, before).await?;
    // The model knows the lines that it has written.
    this.ledger.record(&cx, &path, &version, 0..length);
    Ok(format!("Wrote `{path}`: {length} lines."))
}

/// Replaces a text in a file.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FileEdit {
    /// The path, relative to the folder.
    path: String,
    /// The text to replace, exactly as it stands there; it must occur once.
    old_string: String,
    /// The new text; empty to remove the old one.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

pub(super) async fn edit(
    this: ToolState<FileState>,
    arguments: FileEdit,
    cx: CallContext,
) -> Result<String, ToolError> {
    let path = FilePath::of_change(&arguments.path).map_err(|error| invalid(&error))?;
    let _changing = this.changing.clone().lock_owned().await;
    let of_file = path.clone();
    let (before, text, encoding) = this
        .blocking(move |folder| {
            let version = present(folder, &of_file)?;
            let (text, encoding) = text_of(&of_file, &version)?;
            Ok((version, text, encoding))
        })
        .await?;
    let lines = text.lines().count();
    let was_read = this.ledger.has_all(&cx, &path, &before.digest, lines);
    let (edited, count) = edited(&path, &text, &arguments)?;
    let version = store(&this, &path, &edited, encoding, Some(before)).await?;
    if was_read {
        this.ledger.record(&cx, &path, &version, 0..edited.lines().count());
    }
    Ok(format!("Changed `{path}`: {count} place(s)."))
}

/// Deletes a file. Its last version stays below `.prev/`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FileDelete {
    /// The path, relative to the folder.
    path: String,
}

pub(super) async fn delete(this: ToolState<FileState>, arguments: FileDelete) -> Result<String, ToolError> {
    let path = FilePath::of_change(&arguments.path).map_err(|error| invalid(&error))?;
    let _changing = this.changing.clone().lock_owned().await;
    let of_file = path.clone();
    this.blocking(move |folder| {
        present(folder, &of_file)?;
        folder.delete(&of_file).map_err(|error| failed(&of_file, &error))
    })
    .await?;
    Ok(format!("Deleted `{path}`. Its last version is `{}`.", path.backup()))
}

/// Stores a text, and returns its version.
async fn store(
    this: &FileState,
    path: &FilePath,
    text: &str,
    encoding: Encoding,
    before: Option<Version>,
) -> Result<rockbot_core::Digest, ToolError> {
    let bytes = encode(text, encoding);
    if bytes.len() > MAX_FILE {
        return Err(too_long());
    }
    let of_file = path.clone();
    this.blocking(move |folder| {
        let replaced = folder.replace(&of_file, &bytes, before.as_ref());
        replaced.map_err(|error| failed(&of_file, &error))?;
        Ok(Version::of(bytes).digest)
    })
    .await
}

fn too_long() -> ToolError {
    ToolError::invalid_arguments("a file has up to 4 MiB: write it in parts")
}

/// Returns the text with the replacement, and the number of places.
fn edited(path: &FilePath, text: &str, arguments: &FileEdit) -> Result<(String, usize), ToolError> {
    let mut old = Cow::from(&*arguments.old_string);
    let mut new = Cow::from(&*arguments.new_string);
    if old.is_empty() || old == new {
        return Err(ToolError::invalid_arguments(
            "old_string is empty, or the same as new_string",
        ));
    }
    if !text.contains(&*old) && text.contains("\r\n") {
        // Models write line ends of one kind only.
        (old, new) = (old.replace('\n', "\r\n").into(), new.replace('\n', "\r\n").into());
    }
    let count = text.matches(&*old).count();
    match count {
        0 => {
            let near = nearest::region(text, &arguments.old_string);
            let near = near.map_or_else(
                || "nothing there is like it".to_owned(),
                |near| format!("the nearest region is\n{near}"),
            );
            Err(ToolError::execution_failed(format!(
                "not changed: old_string does not occur in `{path}`; {near}"
            )))
        }
        1 => Ok((text.replacen(&*old, &new, 1), 1)),
        // Checked before it is made: each of many places may get a long text.
        _ if arguments.replace_all && count.saturating_mul(new.len()) > 2 * MAX_FILE => Err(too_long()),
        _ if arguments.replace_all => Ok((text.replace(&*old, &new), count)),
        _ => {
            let line = |at: usize| text[..at].matches('\n').count() + 1;
            let lines: Vec<_> = text
                .match_indices(&*old)
                .take(10)
                .map(|(at, _)| line(at).to_string())
                .collect();
            Err(ToolError::execution_failed(format!(
                "not changed: old_string occurs {count} times in `{path}`, in the lines {}: give more of the text around it, \
                 or set replace_all",
                lines.join(", ")
            )))
        }
    }
}
