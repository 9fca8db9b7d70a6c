//! The tool that reads text files below the current folder.

use std::path::{Path, PathBuf};

use rockbot::prelude::*;

/// Maximum size of a file that the tool reads, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// Reads a text file below the current folder.
#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// The path of the file, relative to the current folder.
    path: PathBuf,
}

/// Returns the tool; files are read below `root`.
pub(crate) fn read_file(root: PathBuf) -> Tool {
    // The content of a file goes to the model's provider, so each call needs an approval.
    stateful_tool("read_file", root, read).pure().needs_approval()
}

async fn read(root: ToolState<PathBuf>, args: ReadFile) -> Result<String, ToolError> {
    let shown = args.path.display().to_string();
    let failed = |problem: &str| ToolError::execution_failed(format!("`{shown}` cannot be read: {problem}"));
    let path = below(&root, &args.path).map_err(|error| failed(&error))?;
    let metadata = std::fs::metadata(&path).map_err(|error| failed(&error.to_string()))?;
    if !metadata.is_file() {
        return Err(failed("it is not a file"));
    }
    if metadata.len() > MAX_FILE {
        return Err(failed(&format!("it is longer than {MAX_FILE} bytes")));
    }
    let bytes = std::fs::read(&path).map_err(|error| failed(&error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| failed("it is not text"))
}

/// Resolves `path`, following links, and checks that it lies below `root`.
fn below(root: &Path, path: &Path) -> Result<PathBuf, String> {
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    let path = root.join(path).canonicalize().map_err(|error| error.to_string())?;
    if path.starts_with(&root) {
        Ok(path)
    } else {
        Err("it is not below the current folder".to_owned())
    }
}
