//! Images and files: those of a question are read, those of an answer saved.

use std::path::{Path, PathBuf};

use rockbot::content::{ContentPart, MediaSource};
use rockbot::prelude::*;
use rockbot::store::MediaStore;

use crate::terminal::clean;

/// Reads the files that a question shows.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<MediaPart>, BoxError> {
    let read = |path: &PathBuf| match std::fs::read(path) {
        Ok(bytes) => Ok(MediaPart::of_file(
            path.file_name().unwrap_or_default().to_string_lossy(),
            bytes,
        )),
        Err(error) => Err(format!("`{}` cannot be read: {error}", path.display()).into()),
    };
    paths.iter().map(read).collect()
}

/// Saves the images and files of an answer in `folder`, and tells where each is.
pub(crate) async fn save(host: &AgentHost, outcome: &TurnOutcome, folder: &Path) -> Result<(), BoxError> {
    for part in &outcome.media {
        match part.as_media().map(|media| (&media.source, &*media.media_type)) {
            Some((MediaSource::Url(url), _)) => eprintln!("[{} at {}]", part.kind(), clean(url)),
            Some((MediaSource::Stored(stored), media_type)) => {
                let store = host.parts().get::<dyn MediaStore>();
                let store = store.ok_or("the host has no media store")?;
                let bytes = store.get(host.agent().principal(), &stored.digest).await?;
                let bytes = bytes.ok_or("an image of the answer is not stored any more")?;
                let file = folder.join(format!("{:.12}.{}", stored.digest.to_string(), ending(media_type)));
                std::fs::create_dir_all(folder)?;
                std::fs::write(&file, bytes)
                    .map_err(|error| format!("`{}` cannot be written: {error}", file.display()))?;
                eprintln!("[{} saved as {}]", part.kind(), file.display());
            }
            _ => eprintln!("{}", clean(&ContentPart::to_string(part))),
        }
    }
    Ok(())
}

/// Returns the ending of the name of a file. The media type is the model's word, so only known ones name a kind.
fn ending(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}
