//! Usage of an answer in tokens and cost, in the spellings of different providers.

use rockbot_core::chat::{MicroUsd, Usage};
use serde_json::value::RawValue;

use super::wire::{WireCost, WireUsage};

/// Reads the usage and the cost; `None` if they are malformed, which is no reason to reject the
/// answer. The usage of a server that counts no tokens is unknown, not zero.
pub(crate) fn read_usage(raw: &RawValue) -> Option<(Option<Usage>, Option<MicroUsd>)> {
    let usage: WireUsage = serde_json::from_str(raw.get()).ok()?;
    let cost = usage.money();
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
    // Some servers leave the reasoning out of the answer's tokens; the total has it.
    let rest = usage.total_tokens.unwrap_or(0).saturating_sub(input);
    let usage = Usage::new(input, output.max(rest))
        .with_cached(cached.unwrap_or(0))
        .with_reasoning(reasoning.unwrap_or(0));
    Some((Some(usage).filter(|usage| usage.total() > 0), cost))
}

impl WireUsage {
    /// Returns the whole input. Anthropic's count leaves out tokens that were read from a cache or
    /// written to it.
    fn input(&self) -> u64 {
        let cache = [self.cache_read_input_tokens, self.cache_creation_input_tokens];
        let cache = cache.into_iter().flatten().fold(0, u64::saturating_add);
        self.input_tokens.unwrap_or(0).saturating_add(cache)
    }

    /// Returns the cost that the provider reports, rounded up. With a user's own key for the provider
    /// behind it (BYOK), the cost there is added.
    fn money(&self) -> Option<MicroUsd> {
        let dollars = match self.cost.as_ref()? {
            WireCost::Total(dollars) | WireCost::Parts { total_cost: dollars } => *dollars,
            WireCost::Other(_) => return None,
        };
        let details = self.cost_details.as_ref().filter(|_| self.is_byok == Some(true));
        let upstream = details.and_then(|details| details.upstream_inference_cost);
        let dollars = dollars + upstream.unwrap_or(0.0);
        // A price in binary digits may be a little above the intended price.
        (0.0..1e12)
            .contains(&dollars)
            .then(|| MicroUsd((dollars * 1e6 - 1e-3).ceil() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, [input, output, cached, reasoning]: [u64; 4]) {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let expected = Usage::new(input, output).with_cached(cached).with_reasoning(reasoning);
        assert_eq!(read_usage(&raw).unwrap().0, Some(expected), "{json}");
    }

    #[test]
    fn every_spelling_is_known() {
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
    fn the_price_is_what_the_provider_says() {
        let check = |json: &str, expected: Option<u64>| {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(read_usage(&raw).unwrap().1, expected.map(MicroUsd), "{json}");
        };
        check(r#"{"prompt_tokens":9}"#, None);
        check(r#"{"prompt_tokens":9,"cost":0}"#, Some(0));
        check(r#"{"prompt_tokens":9,"cost":0.00123}"#, Some(1_230));
        check(r#"{"cost":0.00000015}"#, Some(1));
        check(
            r#"{"cost":1.5,"cost_details":{"upstream_inference_cost":null}}"#,
            Some(1_500_000),
        );
        let own_key = r#"{"cost":0.001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.02}}"#;
        check(own_key, Some(21_000));
        check(&own_key.replace("true", "false"), Some(1_000));
        check(r#"{"cost":{"input_tokens_cost":0.1,"total_cost":0.25}}"#, Some(250_000));
        for nonsense in [
            r#"{"cost":"free"}"#,
            r#"{"cost":-1}"#,
            r#"{"cost":1e300}"#,
            r#"{"cost":null}"#,
        ] {
            check(nonsense, None);
        }
    }

    #[test]
    fn tokens_that_a_server_does_not_count_are_unknown() {
        for json in ["{}", r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#] {
            assert_eq!(
                read_usage(&RawValue::from_string(json.into()).unwrap()),
                Some((None, None)),
                "{json}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_none() {
        for json in [r#"{"prompt_tokens":-1}"#, "null", r#""x""#] {
            assert_eq!(read_usage(&RawValue::from_string(json.into()).unwrap()), None, "{json}");
        }
    }
}
