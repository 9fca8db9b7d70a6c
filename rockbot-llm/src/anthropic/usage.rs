//! Usage of an answer in tokens.

use rockbot_core::chat::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The counts so far. A stream reports counts twice: the request's at its beginning, all of them
/// at its end.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct TokenCounts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl TokenCounts {
    /// Takes in reported counts. They are cumulative, so the larger one counts. Malformed counts are
    /// ignored, since they are no reason to reject the answer.
    pub(super) fn add(&mut self, raw: &RawValue) {
        let Ok(new) = serde_json::from_str::<Self>(raw.get()) else {
            return;
        };
        self.input_tokens = self.input_tokens.max(new.input_tokens);
        self.output_tokens = self.output_tokens.max(new.output_tokens);
        self.cache_read_input_tokens = self.cache_read_input_tokens.max(new.cache_read_input_tokens);
        self.cache_creation_input_tokens = self.cache_creation_input_tokens.max(new.cache_creation_input_tokens);
    }

    /// Returns the usage, if any count was reported. The API's `input_tokens` leaves out tokens that
    /// were read from the cache or written to it; a [`Usage`] counts the whole input.
    pub(super) fn usage(&self) -> Option<Usage> {
        let input = [
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        if input.iter().chain([&self.output_tokens]).all(Option::is_none) {
            return None;
        }
        Some(
            Usage::new(
                input.into_iter().flatten().fold(0, u64::saturating_add),
                self.output_tokens.unwrap_or(0),
            )
            .with_cached(self.cache_read_input_tokens.unwrap_or(0)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reports: &[&str], expected: Option<[u64; 3]>) {
        let mut counts = TokenCounts::default();
        for report in reports {
            counts.add(&RawValue::from_string((*report).to_owned()).unwrap());
        }
        let usage = counts.usage().map(|usage| [usage.input, usage.output, usage.cached]);
        assert_eq!(usage, expected, "{reports:?}");
    }

    #[test]
    fn the_input_has_cached_tokens_within() {
        check(&[r#"{"input_tokens":9,"output_tokens":5}"#], Some([9, 5, 0]));
        let cached =
            r#"{"input_tokens":9,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":10}"#;
        check(&[cached], Some([119, 5, 100]));
    }

    #[test]
    fn reports_of_a_stream_are_cumulative() {
        let begin = r#"{"input_tokens":9,"output_tokens":1,"cache_read_input_tokens":100}"#;
        check(&[begin, r#"{"output_tokens":15}"#], Some([109, 15, 100]));
        let end = r#"{"input_tokens":0,"output_tokens":15,"cache_read_input_tokens":null}"#;
        check(&[begin, end], Some([109, 15, 100]));
    }

    #[test]
    fn malformed_reports_are_ignored() {
        check(&[], None);
        check(&["null", "{}", r#""x""#, r#"{"input_tokens":-1}"#], None);
        let huge = format!(r#"{{"input_tokens":{0},"cache_read_input_tokens":{0}}}"#, u64::MAX);
        check(&[&huge], Some([u64::MAX, 0, u64::MAX]));
    }
}
