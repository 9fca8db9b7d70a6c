//! Parts that tests need and that this repository does not have, such as servers of others.

use std::path::PathBuf;

/// Returns the value of the variable that names an outside part, or `None` if the test is to be
/// skipped. It then prints `SKIPPED` and the reason, which ends in `advice`, such as the script
/// that installs the part.
///
/// # Panics
///
/// Panics instead of skipping the test if `ROCKBOT_TEST_REQUIRE` is `all`.
#[must_use]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn outside_part(variable: &str, advice: &str) -> Option<PathBuf> {
    if let Some(part) = std::env::var_os(variable) {
        return Some(part.into());
    }
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(!is_required, "{variable} is not set: {advice}");
    println!("SKIPPED: {variable} is not set: {advice}");
    None
}
