//! The bytes of images and files that messages and answers refer to.

use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use rockbot_core::Digest;
use serde::Deserialize;

use crate::door::{Caller, UrlPath, UrlQuery};
use crate::error::WebError;

/// Media types that a browser may show. Others are downloads: a browser must not show a file as a
/// page of this origin.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

#[derive(Deserialize)]
pub(super) struct MediaQuery {
    #[serde(rename = "type")]
    media_type: Option<String>,
}

/// Returns the bytes with this digest, if they are the user's.
pub(super) async fn bytes(
    caller: Caller,
    UrlPath(digest): UrlPath<Digest>,
    UrlQuery(query): UrlQuery<MediaQuery>,
) -> Result<Response, WebError> {
    let bytes = match &caller.door.media {
        Some(media) => media.get(&caller.principal, &digest).await?,
        None => None,
    };
    let bytes = bytes.ok_or_else(|| WebError::not_found("there is no such image or file"))?;
    let shown = SHOWN
        .into_iter()
        .find(|shown| query.media_type.as_deref() == Some(shown));
    let headers = [
        (CONTENT_TYPE, shown.unwrap_or("application/octet-stream")),
        (
            CONTENT_DISPOSITION,
            if shown.is_some() { "inline" } else { "attachment" },
        ),
        // Bytes under a digest never change, and are the user's alone.
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    ];
    Ok((headers, bytes).into_response())
}
