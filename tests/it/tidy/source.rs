//! The source files of the workspace.

use std::path::{Path, PathBuf};

/// The crates below the facade.
pub(super) const LIBRARIES: [&str; 17] = [
    "rockbot-bus",
    "rockbot-core",
    "rockbot-eval",
    "rockbot-text-calls",
    "rockbot-host",
    "rockbot-json",
    "rockbot-llm",
    "rockbot-mcp",
    "rockbot-memory",
    "rockbot-pages",
    "rockbot-remote",
    "rockbot-provenance",
    "rockbot-schema",
    "rockbot-search",
    "rockbot-store",
    "rockbot-tools",
    "rockbot-web",
];

/// Returns the folder of the workspace.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all Rust files below `folder`, in order.
pub(super) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry of a source folder").path();
            match path.extension() {
                _ if path.is_dir() && path.file_name().is_some_and(|name| name != "target") => folders.push(path),
                Some(extension) if extension == "rs" => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files
}
