//! Decay of importance: a memory that is not learned again fades.

use std::time::Duration;

use rockbot_core::Timestamp;
use rockbot_core::store::MemoryEntry;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The decay of importance with the time since an entry was last learned: exponential after a
/// grace period.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Decay {
    /// Grace period without decay. Default 30 days.
    pub grace: Duration,
    /// Half-life after the grace period. Default 45 days; zero disables decay.
    pub half_life: Duration,
    /// Lower bound, unless the score was lower from the beginning. Default 0.1.
    pub floor: f64,
    /// Lowest importance of an entry that does not fade: an important entry is found when it is
    /// old, too. Default 0.7.
    pub lasting: f64,
}

impl Default for Decay {
    fn default() -> Self {
        Self {
            grace: DAY * 30,
            half_life: DAY * 45,
            floor: 0.1,
            lasting: 0.7,
        }
    }
}

impl Decay {
    /// Sets the grace period without decay. Default 30 days.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the half-life after the grace period. Default 45 days; zero disables decay.
    #[must_use]
    pub fn with_half_life(mut self, half_life: Duration) -> Self {
        self.half_life = half_life;
        self
    }

    /// Sets the lower bound, unless the score was lower from the beginning. Default 0.1.
    #[must_use]
    pub fn with_floor(mut self, floor: f64) -> Self {
        self.floor = floor;
        self
    }

    /// Sets the lowest importance of an entry that does not fade. Default 0.7.
    #[must_use]
    pub fn with_lasting(mut self, lasting: f64) -> Self {
        self.lasting = lasting;
        self
    }

    /// Returns the importance of `entry` at `now`, from 0 to 1. The stored score is unchanged, so an
    /// entry that is learned again regains it.
    ///
    /// ```
    /// use rockbot_core::Timestamp;
    /// use rockbot_core::chat::Provenance;
    /// use rockbot_core::store::MemoryEntry;
    /// use rockbot_memory::recall::Decay;
    ///
    /// let day = |day: u64| Timestamp::from_millis(day * 24 * 60 * 60 * 1000);
    /// let entry = MemoryEntry::new("m1", "likes tea", day(0), Provenance::USER);
    /// let at = |now| Decay::default().importance(&entry, day(now));
    /// assert_eq!([at(0), at(30), at(75), at(1_000)], [0.5, 0.5, 0.25, 0.1]);
    /// ```
    pub fn importance(&self, entry: &MemoryEntry, now: Timestamp) -> f64 {
        // A file may hold any number.
        let score = match entry.importance_score {
            score if score.is_finite() => score.clamp(0.0, 1.0),
            _ => 0.5,
        };
        let fading = now.since(entry.last_seen()).saturating_sub(self.grace);
        if self.half_life.is_zero() || fading.is_zero() || score >= self.lasting {
            return score;
        }
        let half_lives = fading.as_secs_f64() / self.half_life.as_secs_f64();
        (score * 0.5_f64.powf(half_lives)).max(score.min(self.floor))
    }
}
