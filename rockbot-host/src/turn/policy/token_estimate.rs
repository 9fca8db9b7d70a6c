//! An estimate of a request's tokens from its bytes, calibrated by the provider's count of the
//! last request.
//!
//! Tokenizers differ between models, and an exact count would need the tokenizer of each model.
//! The ratio of the last request is close enough to decide about compaction.

/// Minimum size in bytes of a request that calibrates the estimate. In shorter requests the
/// tokens that providers add to each request would distort the ratio.
const MIN_BYTES: u64 = 1_000;

/// Size of an image or a file in a request, in bytes of text that cost as many tokens: about
/// 1 000 tokens, as providers count for a picture of medium size.
pub(in crate::turn) const MEDIA_SIZE: usize = 4_000;

/// The ratio of tokens to bytes. Default one token for four bytes, until the provider has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::turn) struct TokenEstimate {
    bytes: u64,
    tokens: u64,
}

impl Default for TokenEstimate {
    fn default() -> Self {
        Self { bytes: 4, tokens: 1 }
    }
}

impl TokenEstimate {
    /// Applies the provider's count of `tokens` in a request of `bytes`.
    ///
    /// An implausible count is ignored: more than one token for each byte, or fewer than one for
    /// sixteen.
    pub(in crate::turn) fn calibrate(&mut self, bytes: usize, tokens: u64) {
        let bytes = bytes as u64;
        if bytes >= MIN_BYTES && (bytes / 16..=bytes).contains(&tokens) {
            *self = Self { bytes, tokens };
        }
    }

    /// Converts bytes to an approximate number of tokens.
    pub(in crate::turn) fn tokens(self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(self.tokens) / self.bytes
    }

    /// Converts tokens to an approximate number of bytes.
    pub(in crate::turn) fn bytes(self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(self.bytes) / self.tokens;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// Reports whether a model may have a context window of so many tokens. Servers report other
/// numbers, too, and a window that was learned from such a number would spoil all later turns.
pub(crate) fn is_window(tokens: u64) -> bool {
    (256..=1 << 30).contains(&tokens)
}

/// Returns this part of a number of tokens, which may be `u64::MAX` for "no limit".
pub(in crate::turn) fn percent_of(tokens: u64, percent: u64) -> u64 {
    tokens / 100 * percent + tokens % 100 * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counted: &[(usize, u64)], tokens: u64) {
        let mut estimate = TokenEstimate::default();
        for (bytes, tokens) in counted {
            estimate.calibrate(*bytes, *tokens);
        }
        assert_eq!(estimate.tokens(12_000), tokens, "{counted:?}");
    }

    #[test]
    fn the_last_count_of_the_provider_applies() {
        check(&[], 3_000);
        check(&[(10_000, 5_000)], 6_000);
        check(&[(10_000, 5_000), (20_000, 5_000)], 3_000);
    }

    #[test]
    fn implausible_counts_are_ignored() {
        check(&[(999, 900)], 3_000);
        check(&[(10_000, 0)], 3_000);
        check(&[(10_000, 10_001)], 3_000);
        check(&[(10_000, 100)], 3_000);
    }

    #[test]
    fn a_percentage_of_any_number_is_exact() {
        assert_eq!(percent_of(199, 50), 99);
        assert_eq!(percent_of(u64::MAX, 50), u64::MAX / 2);
        assert_eq!(percent_of(u64::MAX, 100), u64::MAX);
    }

    #[test]
    fn bytes_and_tokens_are_each_others_inverse() {
        let mut estimate = TokenEstimate::default();
        estimate.calibrate(3_000, 1_000);
        assert_eq!(estimate.bytes(estimate.tokens(9_000)), 9_000);
    }
}
