//! The reports of a turn, kept for readers that come later.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{ProgressSink, TurnProgress};

/// Maximum length of the texts that a feed keeps, in bytes. The oldest reports go first.
const MAX_BYTES: usize = 4 << 20;

/// Weight of a report beside its texts, in bytes.
const REPORT_BYTES: usize = 64;

/// The reports of one turn, from its beginning on: any number of readers read them, each at its
/// own pace.
///
/// A position in a feed is the number of units before it: each report is one, and a piece of text
/// counts its bytes. Consecutive pieces of text are kept as one, so a reader that is behind reads
/// few long pieces. If a turn reports more than 4 MiB, its oldest reports are dropped, and a
/// reader that comes later begins with the oldest report that is left.
#[derive(Clone, Default)]
pub struct TurnFeed(Arc<Mutex<FeedState>>);

#[derive(Default)]
struct FeedState {
    reports: VecDeque<KeptReport>,
    /// Position after the last report.
    end: u64,
    bytes: usize,
    /// Number of readers.
    readers: usize,
    /// Readers that wait for the next report.
    waiting: Vec<Waker>,
}

struct KeptReport {
    /// Position before the report.
    start: u64,
    progress: TurnProgress,
}

/// A position in a feed. The reader goes on from there.
#[derive(Debug)]
pub(super) struct FeedReader {
    feed: TurnFeed,
    position: u64,
}

impl TurnFeed {
    /// Creates a feed without reports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores a feed from the position before its first report and its reports, as
    /// [`without_readers`](Self::without_readers) returned them.
    pub fn restored(first: u64, reports: impl IntoIterator<Item = TurnProgress>) -> Self {
        let feed = Self::new();
        let mut state = feed.lock();
        state.end = first;
        reports.into_iter().for_each(|progress| state.push(progress));
        drop(state);
        feed
    }

    /// Returns the position before the first report, and the reports, so that the holder of a feed
    /// may keep them in another form. Returns `None` while the feed has a reader, to whom further
    /// reports must come.
    ///
    /// ```
    /// use rockbot_core::turn::{TurnFeed, TurnProgress};
    ///
    /// let feed = TurnFeed::new();
    /// feed.push(TurnProgress::Note("Tea.".into()));
    /// let (first, reports) = feed.without_readers().expect("nothing reads it");
    /// assert_eq!(reports, [TurnProgress::Note("Tea.".into())]);
    /// let same = TurnFeed::restored(first, reports);
    /// assert_eq!(same.without_readers(), feed.without_readers());
    /// ```
    pub fn without_readers(&self) -> Option<(u64, Vec<TurnProgress>)> {
        let state = self.lock();
        let first = state.reports.front().map_or(state.end, |report| report.start);
        let reports = || state.reports.iter().map(|report| report.progress.clone()).collect();
        (state.readers == 0).then(|| (first, reports()))
    }

    /// Returns a sink that appends to the feed, and passes each report on to `sink`. The outcome is
    /// only passed on: readers get it from the turn.
    pub fn with_sink(&self, sink: ProgressSink) -> ProgressSink {
        let feed = self.clone();
        let wants_deltas = sink.wants_deltas() || !sink.is_open();
        let receive = move |progress: TurnProgress| {
            if !matches!(progress, TurnProgress::Final(_)) {
                if !sink.is_open() {
                    return feed.push(progress);
                }
                feed.push(progress.clone());
            }
            sink.send(|| progress);
        };
        if wants_deltas {
            ProgressSink::new(receive)
        } else {
            ProgressSink::without_deltas(receive)
        }
    }

    /// Returns a reader of the reports behind `position`.
    pub(super) fn read_after(&self, position: u64) -> FeedReader {
        self.lock().readers += 1;
        let feed = self.clone();
        FeedReader { feed, position }
    }

    /// Appends a report and wakes all readers.
    pub fn push(&self, progress: TurnProgress) {
        let mut state = self.lock();
        state.push(progress);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    fn push(&mut self, progress: TurnProgress) {
        let units = units(&progress);
        self.bytes += text_len(&progress);
        let last = self.reports.back_mut().map(|last| &mut last.progress);
        match (last, progress) {
            (Some(TurnProgress::Delta(text)), TurnProgress::Delta(more))
            | (Some(TurnProgress::Reasoning(text)), TurnProgress::Reasoning(more)) => text.push_str(&more),
            (_, progress) => {
                self.bytes += REPORT_BYTES;
                let start = self.end;
                let is_waiting = matches!(progress, TurnProgress::ApprovalNeeded(_));
                self.reports.push_back(KeptReport { start, progress });
                if is_waiting {
                    // The turn may wait for days, and thousands of turns may.
                    self.reports.shrink_to_fit();
                }
            }
        }
        self.end += units;
        while self.bytes > MAX_BYTES && self.reports.len() > 1 {
            let oldest = self.reports.pop_front().expect("there are two or more");
            self.bytes -= text_len(&oldest.progress) + REPORT_BYTES;
        }
    }

    /// Returns the first report after `position`, and the position after that report.
    fn after(&self, position: u64) -> Option<(TurnProgress, u64)> {
        let next = self.reports.partition_point(|report| report.start <= position);
        let last = next.checked_sub(1).and_then(|last| self.reports.get(last));
        let rest = last.and_then(|report| report.rest(position));
        let unread = || self.reports.get(next).and_then(|report| report.rest(report.start));
        rest.or_else(unread)
    }
}

impl KeptReport {
    /// Returns the part of the report after `position`, and the position after that part.
    fn rest(&self, position: u64) -> Option<(TurnProgress, u64)> {
        let end = self.start + units(&self.progress);
        if position >= end {
            return None;
        }
        let read = usize::try_from(position - self.start).unwrap_or(usize::MAX);
        // A position of another turn may be within a character.
        let rest = |text: &String| text.get(read..).unwrap_or(text).to_owned();
        let progress = match &self.progress {
            TurnProgress::Delta(text) => TurnProgress::Delta(rest(text)),
            TurnProgress::Reasoning(text) => TurnProgress::Reasoning(rest(text)),
            progress => progress.clone(),
        };
        Some((progress, end))
    }
}

impl FeedReader {
    /// Returns the position after the last report that was read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next report; pending until there is one.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<TurnProgress> {
        let mut state = self.feed.lock();
        // A position of an earlier process, whose feed was longer: everything in this feed is new.
        if self.position > state.end {
            self.position = 0;
        }
        if let Some((progress, end)) = state.after(self.position) {
            self.position = end;
            return Poll::Ready(progress);
        }
        if !state.waiting.iter().any(|reader| reader.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.feed.lock().readers -= 1;
    }
}

impl fmt::Debug for TurnFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnFeed")
            .field("end", &self.lock().end)
            .finish_non_exhaustive()
    }
}

/// Returns the number of units of a report.
fn units(progress: &TurnProgress) -> u64 {
    match progress {
        TurnProgress::Delta(text) | TurnProgress::Reasoning(text) => text.len() as u64,
        _ => 1,
    }
}

/// Returns the length of the texts of a report that may be long, in bytes.
fn text_len(progress: &TurnProgress) -> usize {
    match progress {
        TurnProgress::Delta(text)
        | TurnProgress::Reasoning(text)
        | TurnProgress::Note(text)
        | TurnProgress::ToolProgress { text, .. } => text.len(),
        TurnProgress::ToolStarted { arguments, .. } => arguments.len(),
        TurnProgress::ToolFinished { content, .. } => content.len(),
        _ => 0,
    }
}
