//! The files that go to agents with a task, and the files of their answers.

use std::fmt::Write as _;

use rockbot_core::content::{MediaPart, MediaSource};
use rockbot_core::support::one_line;
use rockbot_core::tool::ToolError;

use super::host::Caller;

/// Maximum number of files of a task.
pub(super) const MAX_FILES: usize = 8;

/// Maximum length of the files of a task together, in bytes: the task is kept with them until the
/// agent has it.
const MAX_BYTES: usize = 1 << 20;

/// Maximum length of the URL of a file, in bytes.
const MAX_URL: usize = 2_048;

/// Maximum length of the name of a file that comes from an agent, in characters.
const MAX_NAME: usize = 100;

impl Caller {
    /// Reads the files of a task: the agent's own files by their paths, and references by their URLs,
    /// which the other agent reads itself. The tool's schema bounds their number.
    pub(super) async fn files(&self, named: &[String]) -> Result<Vec<MediaPart>, ToolError> {
        let mut files = Vec::with_capacity(named.len());
        let mut size = 0;
        for name in named {
            let name = name.trim();
            if name.starts_with("https://") || name.starts_with("http://") {
                files.push(reference(name)?);
                continue;
            }
            let own = self.files.as_ref().ok_or_else(|| {
                ToolError::execution_failed("this host has no folder of files: name files by URLs, or leave them out")
            })?;
            let bytes = own.read(name).await?;
            size += bytes.len();
            if size > MAX_BYTES {
                return Err(ToolError::invalid_arguments(format!(
                    "the files have more than {MAX_BYTES} bytes together: send fewer, or URLs"
                )));
            }
            files.push(file(name, bytes));
        }
        Ok(files)
    }
}

fn reference(url: &str) -> Result<MediaPart, ToolError> {
    if url.len() > MAX_URL || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(ToolError::invalid_arguments(format!(
            "the URL of a file has no spaces, and at most {MAX_URL} bytes"
        )));
    }
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let kind = MediaPart::of_file(name, Vec::new()).media_type;
    Ok(MediaPart::url(kind, url).with_name(name))
}

fn file(path: &str, bytes: Vec<u8>) -> MediaPart {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_text = std::str::from_utf8(&bytes).is_ok();
    let mut file = MediaPart::of_file(name, bytes);
    // Agents take texts of any ending.
    if is_text && file.media_type == "application/octet-stream" {
        file.media_type = "text/plain".to_owned();
    }
    file
}

/// Returns the text of a file; `None` if the file is no text, or not here.
pub(super) fn text_of(file: &MediaPart) -> Option<&str> {
    match &file.source {
        MediaSource::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Returns everything that tells files apart, for a digest.
pub(super) fn identity(files: &[MediaPart]) -> String {
    let mut all = String::new();
    for file in files {
        let source = match &file.source {
            MediaSource::Bytes(bytes) => rockbot_core::Digest::of([bytes]).to_string(),
            MediaSource::Url(url) => url.clone(),
            other => format!("{other:?}"),
        };
        writeln!(all, "{:?} {source}", file.name).expect("a String takes everything");
    }
    all
}

/// Returns a file of an answer, with a name and a media type that can stand in a message.
pub(super) fn received(bytes: Vec<u8>, name: Option<&str>, kind: Option<&str>) -> MediaPart {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '+' | '.');
    let kind = kind.filter(|kind| kind.len() <= MAX_NAME && kind.contains('/') && kind.chars().all(is_legal));
    let name: String = one_line(name.unwrap_or("file")).chars().take(MAX_NAME).collect();
    MediaPart::bytes(kind.unwrap_or("application/octet-stream"), bytes).with_name(name)
}

/// Returns `true` if a model is shown a file of this media type.
pub(super) fn is_shown(file: &MediaPart) -> bool {
    file.is_image() || file.media_type == "application/pdf"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_answers_have_plain_names_and_types() {
        let of = |name: &str, kind: &str| {
            let file = received(vec![1], Some(name), Some(kind));
            (file.name.unwrap(), file.media_type)
        };
        let unknown = "application/octet-stream".to_owned();
        assert_eq!(of("a.png", "image/png"), ("a.png".to_owned(), "image/png".to_owned()));
        assert_eq!(
            of("a\n## b", "image/png\r\nx: y"),
            ("a ## b".to_owned(), unknown.clone())
        );
        let long = of(&"x".repeat(1_000), &"y/".repeat(1_000));
        assert_eq!((long.0.len(), long.1), (MAX_NAME, unknown));
    }

    #[test]
    fn a_reference_has_the_name_and_type_of_its_path() {
        let of = |url: &str| reference(url).map(|file| (file.name.unwrap(), file.media_type));
        let pdf = ("a.pdf".to_owned(), "application/pdf".to_owned());
        assert_eq!(of("https://files.example.com/x/a.pdf?key=1#p").unwrap(), pdf);
        assert!(of("https://files.example.com/a b").is_err());
        assert!(of(&format!("https://a.example/{}", "x".repeat(MAX_URL))).is_err());
    }
}
