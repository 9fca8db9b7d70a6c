//! The agent's initial profile: files that the operator edits.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rockbot::prelude::*;

const FILES: [(&str, &str); 3] = [
    ("soul.md", include_str!("agent/soul.md")),
    ("directives.md", include_str!("agent/directives.md")),
    ("style.md", include_str!("agent/style.md")),
];

/// Creates the folder of tool descriptors, and returns its path.
pub(crate) fn tools(folder: &Path) -> Result<PathBuf, BoxError> {
    let tools = folder.join("tool-services");
    match std::fs::create_dir_all(&tools) {
        Ok(()) => Ok(tools),
        Err(error) => Err(format!("cannot create `{}`: {error}", tools.display()).into()),
    }
}

/// Writes the files that are missing into `folder`. Existing files are never overwritten.
pub(crate) fn seed(folder: &Path) -> Result<(), BoxError> {
    let failed = |path: &Path, error: &std::io::Error| {
        let path = path.display();
        format!("cannot write `{path}`: {error}; choose another folder with --data")
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        match File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(&path, &error).into()),
            _ => {}
        }
    }
    Ok(())
}
