//! Folders of stores, looked at from outside.

use std::collections::BTreeMap;
use std::path::Path;

/// All files in a folder, nested ones too, and what is in them, without the lock.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files);
    files.remove("lock");
    files
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    files(folder).into_keys().collect()
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(
                name,
                String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned(),
            );
        }
    }
}

/// Writes a file as a person would: in its place, with its folders.
pub(crate) fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Copies a folder, without the files whose name ends with `without`.
pub(crate) fn copy(from: &Path, to: &Path, without: Option<&str>) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to, without);
        } else if !without.is_some_and(|end| to.to_string_lossy().ends_with(end)) {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
