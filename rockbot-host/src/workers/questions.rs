//! The pace of an agent's questions to all workers for their announcements.

use std::time::Duration;

use tokio::time::Instant;

/// Time after a question until the next question; it doubles with each question that brought no
/// new tools.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest time between two questions.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The questions of an agent, with exponential back-off.
///
/// Every worker answers a question with all its tools, so an agent whose question is not answered
/// must not repeat it with each heartbeat of each worker.
#[derive(Debug)]
pub(super) struct Questions {
    due: Option<Instant>,
    earliest: Instant,
    pause: Duration,
}

impl Questions {
    /// Creates the questions of an agent that has just asked.
    pub(super) fn asked_at(now: Instant) -> Self {
        Self {
            due: None,
            earliest: now + FIRST_PAUSE,
            pause: FIRST_PAUSE,
        }
    }

    /// Notes that a worker is to be asked. Wishes before the next question share it.
    pub(super) fn want(&mut self, now: Instant) {
        self.due.get_or_insert(now.max(self.earliest));
    }

    /// Returns the moment of the next question, if one is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes that the question was asked.
    pub(super) fn asked(&mut self, now: Instant) {
        self.due = None;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        self.earliest = now + self.pause;
    }

    /// Notes that an announcement has brought new tools, which ends the back-off.
    pub(super) fn answered(&mut self) {
        self.pause = FIRST_PAUSE;
    }
}
