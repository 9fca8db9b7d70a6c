//! Times in ids, in the log, in questions and in metadata.

use rockbot_core::Timestamp;

/// Returns a time with seconds, such as `2026-11-27T03:05:00Z`.
pub(super) fn rfc3339(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%dT%H:%M:%SZ")
}

/// Returns a time for the names of files, such as `2026-11-27T03-05-00Z`.
pub(super) fn file_stamp(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%dT%H-%M-%SZ")
}

/// Returns the day of a time, such as `2026-11-27`.
pub(super) fn date(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%d")
}

fn formatted(at: Timestamp, format: &str) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => at.strftime(format).to_string(),
        // Reached only for clocks beyond the year 9999.
        Err(_) => millis.to_string(),
    }
}
