//! Selects the tier of a message by its length, its words and its structure, without asking a
//! model.

mod rules;
mod rules_file;
mod score;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Clock;
use rockbot_core::turn::{TierDecision, TierSelector, TurnRequest};

pub use self::rules::{TierRules, TierRulesError};

use self::rules_file::RulesFile;

/// A [`TierSelector`] that scores a text from 0 to 1 and compares the score with two ceilings.
///
/// | part | points | for |
/// |---|---|---|
/// | length | 0.05 to 0.40 | up to 10, 15, 20, 30, 50, 100, 200 and more words |
/// | keywords | 0 to 0.35 | 0.10 for each word of hard questions, less 0.08 for each word of simple ones |
/// | structure | 0 to 0.25 | 0.10 for code, 0.12 for mathematics, 0.08 for several steps |
///
/// At most the low ceiling is Low, at most the balanced ceiling is Balanced, all else is High.
/// The reasons of a decision name each part. Only the first 64 KiB of a text are looked at for
/// keywords and structure.
///
/// ```
/// use rockbot_core::chat::ModelTier;
/// use rockbot_llm::KeywordTierSelector;
///
/// let selector = KeywordTierSelector::default();
/// assert_eq!(selector.decide("What is the capital of France?").tier, ModelTier::Low);
///
/// let decision = selector.decide("Analyze the trade-offs of `async` and threads.");
/// assert_eq!(decision.tier, ModelTier::Balanced);
/// assert_eq!(decision.reasons, [
///     "length 0.05: 7 words",
///     "keywords 0.30: analyze, trade-off, async",
///     "structure 0.10: code",
///     "0.45 is above the low ceiling of 0.15, and at most the balanced ceiling of 0.46",
/// ]);
/// ```
#[derive(Debug)]
pub struct KeywordTierSelector(Source);

#[derive(Debug)]
enum Source {
    Fixed(Arc<TierRules>),
    File(RulesFile),
}

impl KeywordTierSelector {
    /// Creates a selector with fixed `rules`. The default selector has [`TierRules::default`], and
    /// reads no file.
    pub fn new(rules: TierRules) -> Self {
        Self(Source::Fixed(Arc::new(rules)))
    }

    /// Creates a selector with the rules of a file such as `tier-selector.json`, as
    /// [`TierRules::from_json`] reads them.
    ///
    /// A file that is missing means the default rules. The file is read again when a decision is
    /// asked for 60 seconds or more after the last read; it is at most 256 KiB, and read where the
    /// decision is made. When it cannot be used, the rules stay as they were, and one warning names
    /// the file and the problem.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(RulesFile::new(path.into())))
    }

    /// Sets the clock that decides when the file is read again. The system's by default.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        match self.0 {
            Source::File(file) => Self(Source::File(file.clock(clock))),
            Source::Fixed(_) => self,
        }
    }

    /// Returns the tier for a text, with reasons.
    pub fn decide(&self, text: &str) -> TierDecision {
        score::decide(text, &self.rules())
    }

    /// Returns the rules that hold now.
    pub fn rules(&self) -> Arc<TierRules> {
        match &self.0 {
            Source::Fixed(rules) => rules.clone(),
            Source::File(file) => file.rules(),
        }
    }
}

impl Default for KeywordTierSelector {
    fn default() -> Self {
        Self::new(TierRules::default())
    }
}

#[async_trait]
impl TierSelector for KeywordTierSelector {
    async fn select(&self, request: &TurnRequest) -> TierDecision {
        self.decide(&request.content.text())
    }
}
