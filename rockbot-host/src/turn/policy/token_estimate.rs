//! How many tokens a request has before anybody counts them: guessed from its bytes, as the provider counted the last one.

/// Requests with fewer bytes say little about longer ones: what providers add to each would count too much.
const MIN_BYTES: u64 = 1_000;

/// How many tokens so many bytes are. Four bytes are one until the provider has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::turn) struct Gauge {
    bytes: u64,
    tokens: u64,
}

impl Default for Gauge {
    fn default() -> Self {
        Self { bytes: 4, tokens: 1 }
    }
}

impl Gauge {
    /// Takes in that the provider counted `tokens` in a request of `bytes`. A count that cannot be right is ignored:
    /// more than a token for each byte, or less than one for sixteen.
    pub(in crate::turn) fn counted(&mut self, bytes: usize, tokens: u64) {
        let bytes = bytes as u64;
        if bytes >= MIN_BYTES && (bytes / 16..=bytes).contains(&tokens) {
            *self = Self { bytes, tokens };
        }
    }

    /// About how many tokens `bytes` are.
    pub(in crate::turn) fn tokens(self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(self.tokens) / self.bytes
    }

    /// About how many bytes `tokens` are.
    pub(in crate::turn) fn bytes(self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(self.bytes) / self.tokens;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counted: &[(usize, u64)], tokens: u64) {
        let mut token_estimate = Gauge::default();
        for (bytes, tokens) in counted {
            token_estimate.counted(*bytes, *tokens);
        }
        assert_eq!(token_estimate.tokens(12_000), tokens, "{counted:?}");
    }

    #[test]
    fn what_the_provider_counted_last_counts() {
        check(&[], 3_000);
        check(&[(10_000, 5_000)], 6_000);
        check(&[(10_000, 5_000), (20_000, 5_000)], 3_000);
    }

    #[test]
    fn counts_that_cannot_be_right_are_ignored() {
        check(&[(999, 900)], 3_000);
        check(&[(10_000, 0)], 3_000);
        check(&[(10_000, 10_001)], 3_000);
        check(&[(10_000, 100)], 3_000);
    }

    #[test]
    fn bytes_and_tokens_are_each_others_inverse() {
        let mut token_estimate = Gauge::default();
        token_estimate.counted(3_000, 1_000);
        assert_eq!(token_estimate.bytes(token_estimate.tokens(9_000)), 9_000);
    }
}
