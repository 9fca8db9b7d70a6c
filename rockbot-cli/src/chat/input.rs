//! Standard input as a text that a question shows.

use std::io::Read as _;

use rockbot::content::{ContentPart, Provenance};
use rockbot::prelude::*;
use rockbot::trust::Trust;

/// Maximum length of the text, in bytes.
const MAX_INPUT: u64 = 1 << 20;

/// Reads standard input to its end. `None` if it is empty.
///
/// The text may be anybody's: a page, a mail, a file. So it is untrusted, and what the model does
/// after it read the text needs the endorsement of the user.
pub(crate) fn read() -> Result<Option<ContentPart>, BoxError> {
    let mut bytes = Vec::new();
    let input = std::io::stdin().lock();
    input.take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(format!("standard input has more than {MAX_INPUT} bytes: show the part that matters").into());
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    let part = ContentPart::text(format!("Standard input:\n{text}"));
    Ok(Some(part.with_provenance(Provenance::new("stdin", Trust::Untrusted))))
}
