//! Images and files: files of a question are read, files of an answer saved.

use std::path::{Path, PathBuf};

use rockbot::content::{ContentPart, MediaSource};
use rockbot::message::AgentReply;
use rockbot::prelude::*;
use rockbot::store::MediaStore;

use super::terminal::clean;

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
        let bytes = match part.as_media().map(|media| &media.source) {
            Some(MediaSource::Stored(stored)) => {
                let store = host.parts().get::<dyn MediaStore>();
                let store = store.ok_or("the host has no media store")?;
                let bytes = store.get(host.agent().principal(), &stored.digest).await?;
                Some(bytes.ok_or("an image of the answer is not stored any more")?)
            }
            _ => None,
        };
        save_part(part, bytes.as_deref(), folder)?;
    }
    Ok(())
}

/// Saves the images and files that a reply of another process carries, and tells where each is.
pub(crate) fn save_reply(reply: &AgentReply, folder: &Path) -> Result<(), BoxError> {
    let mut parts = reply.content.parts().iter().filter(|part| part.as_media().is_some());
    parts.try_for_each(|part| save_part(part, None, folder))
}

/// Saves a part whose bytes are `stored`, or in the part itself; of another one it tells where it
/// is.
fn save_part(part: &ContentPart, stored: Option<&[u8]>, folder: &Path) -> Result<(), BoxError> {
    let bytes = match part.as_media().map(|media| &media.source) {
        Some(MediaSource::Bytes(bytes)) => Some(&**bytes),
        _ => stored,
    };
    match (part.as_media(), bytes) {
        (Some(media), Some(bytes)) => {
            let digest = media
                .source
                .digest()
                .map_or_else(String::new, |digest| digest.to_string());
            let file = folder.join(format!("{digest:.12}.{}", ending(&media.media_type)));
            std::fs::create_dir_all(folder)?;
            std::fs::write(&file, bytes).map_err(|error| format!("`{}` cannot be written: {error}", file.display()))?;
            eprintln!("[{} saved as {}]", part.kind(), file.display());
        }
        (Some(media), None) => match &media.source {
            MediaSource::Url(url) => eprintln!("[{} at {}]", part.kind(), clean(url)),
            _ => eprintln!("{}", clean(&part.to_string())),
        },
        (None, _) => eprintln!("{}", clean(&part.to_string())),
    }
    Ok(())
}

/// Returns the ending of the name of a file. The media type is the model's word, so only known
/// ones name a kind.
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
