//! What an answer cost in tokens, in the words of different providers.

use rockbot_core::chat::Usage;
use serde_json::value::RawValue;

use super::wire::WireUsage;

/// What cannot be read of the usage is not worth an answer.
pub(super) fn read_usage(raw: &RawValue) -> Option<Usage> {
    let usage: WireUsage = serde_json::from_str(raw.get()).ok()?;
    let input_details = usage
        .prompt_tokens_details
        .as_ref()
        .or(usage.input_tokens_details.as_ref());
    let output_details = usage
        .completion_tokens_details
        .as_ref()
        .or(usage.output_tokens_details.as_ref());
    let cached = input_details.and_then(|details| details.cached_tokens);
    let cached = cached
        .or(usage.prompt_cache_hit_tokens)
        .or(usage.cached_tokens)
        .or(usage.cache_read_input_tokens);
    let reasoning = output_details
        .and_then(|details| details.reasoning_tokens)
        .or(usage.reasoning_tokens);
    let input = usage.prompt_tokens.unwrap_or_else(|| usage.input());
    let output = usage.completion_tokens.or(usage.output_tokens).unwrap_or(0);
    // Some leave the reasoning out of the answer's tokens; the total has it.
    let rest = usage.total_tokens.unwrap_or(0).saturating_sub(input);
    Some(Usage {
        input,
        output: output.max(rest),
        cached: cached.unwrap_or(0),
        reasoning: reasoning.unwrap_or(0),
    })
}

impl WireUsage {
    /// The input as Anthropic counts it leaves out what was read from a cache or put there.
    fn input(&self) -> u64 {
        let cache = [self.cache_read_input_tokens, self.cache_creation_input_tokens];
        let cache = cache.into_iter().flatten().fold(0, u64::saturating_add);
        self.input_tokens.unwrap_or(0).saturating_add(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, [input, output, cached, reasoning]: [u64; 4]) {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let expected = Usage {
            input,
            output,
            cached,
            reasoning,
        };
        assert_eq!(read_usage(&raw), Some(expected), "{json}");
    }

    #[test]
    fn every_spelling_is_known() {
        check("{}", [0; 4]);
        check(
            r#"{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}"#,
            [9, 5, 0, 0],
        );
        let openai = r#"{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}"#;
        check(openai, [9, 5, 3, 2]);
        let responses = r#"{"input_tokens":9,"output_tokens":5,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}"#;
        check(responses, [9, 5, 3, 2]);
        let both = r#"{"prompt_tokens":9,"input_tokens":9,"completion_tokens":5,"output_tokens":5,"prompt_tokens_details":null}"#;
        check(both, [9, 5, 0, 0]);
        let deepseek =
            r#"{"prompt_tokens":9,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}"#;
        check(deepseek, [9, 5, 4, 0]);
        check(
            r#"{"prompt_tokens":9,"completion_tokens":5,"cached_tokens":4}"#,
            [9, 5, 4, 0],
        );
        let anthropic =
            r#"{"input_tokens":9,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":10}"#;
        check(anthropic, [119, 5, 100, 0]);
        let with_total =
            r#"{"prompt_tokens":109,"completion_tokens":5,"total_tokens":114,"cache_read_input_tokens":100}"#;
        check(with_total, [109, 5, 100, 0]);
    }

    #[test]
    fn reasoning_that_is_left_out_of_the_answer_is_added() {
        let xai = r#"{"prompt_tokens":9,"completion_tokens":5,"total_tokens":24,"completion_tokens_details":{"reasoning_tokens":10}}"#;
        check(xai, [9, 15, 0, 10]);
        check(
            r#"{"prompt_tokens":9,"completion_tokens":5,"total_tokens":24,"reasoning_tokens":10}"#,
            [9, 15, 0, 10],
        );
        check(
            r#"{"prompt_tokens":9,"completion_tokens":5,"total_tokens":3}"#,
            [9, 5, 0, 0],
        );
    }

    #[test]
    fn what_cannot_be_read_is_none() {
        for json in [r#"{"prompt_tokens":-1}"#, "null", r#""x""#] {
            assert_eq!(read_usage(&RawValue::from_string(json.into()).unwrap()), None, "{json}");
        }
    }
}
