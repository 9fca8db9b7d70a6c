//! Instants of civil times in a time zone, also on the nights when the clocks change.
//!
//! The rules are the rules of Cronos, which the original uses:
//!
//! - A time that the clocks skip, as at the beginning of daylight saving time, fires at the first
//!   instant after the gap.
//! - A time that the clocks repeat fires at both its instants if the expression is an interval,
//!   else at the first.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, ToSpan as _};

use super::civil::CivilTimes;

/// Returns the first instant after `after` when a time of `times` fires in `zone`.
pub(super) fn next_instant(times: &CivilTimes, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let local = zone.to_datetime(after);
    let local = local.with().subsec_nanosecond(0).build().ok()?;
    let from = local.checked_add(1.second()).ok()?;
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { before, after: later } => {
            let fold = Fold::around(after, zone, before, later)?;
            fold.next_instant(times, from, zone)
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => first_from(times, from, zone),
    }
}

/// Returns the first instant of the first of `times` that is not before `from`.
fn first_from(times: &CivilTimes, from: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    first_instant(times.next_from(from)?, zone)
}

/// Returns the first instant when the clocks of `zone` show `civil`. If `civil` is in a gap,
/// returns the first instant after the gap.
pub(super) fn first_instant(civil: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let offset = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => offset,
        // With the offset before it, a time in the gap is an instant after it.
        AmbiguousOffset::Gap { before, .. } => return last_change(before.to_timestamp(civil).ok()?, zone),
    };
    offset.to_timestamp(civil).ok()
}

/// Returns the last change of the clocks that is not after `instant`.
fn last_change(instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let instant = instant.checked_add(SignedDuration::from_nanos(1)).ok()?;
    zone.preceding(instant).next().map(|change| change.timestamp())
}

/// A range of civil times that the clocks show twice, and where in it an instant is.
struct Fold {
    /// The first of the times.
    start: DateTime,
    /// The first time after them.
    end: DateTime,
    /// `true` if the instant is in the first pass.
    is_first_pass: bool,
    first: Offset,
    second: Offset,
}

impl Fold {
    /// Returns the fold around `instant`, with the offsets of its two passes.
    fn around(instant: Timestamp, zone: &TimeZone, first: Offset, second: Offset) -> Option<Self> {
        let is_first_pass = zone.to_offset(instant) == first;
        let change = if is_first_pass {
            zone.following(instant).next()?.timestamp()
        } else {
            last_change(instant, zone)?
        };
        Some(Self {
            start: second.to_datetime(change),
            end: first.to_datetime(change),
            is_first_pass,
            first,
            second,
        })
    }

    /// Returns the first instant of `times` from the time `from` of the current pass on.
    fn next_instant(&self, times: &CivilTimes, from: DateTime, zone: &TimeZone) -> Option<Timestamp> {
        let in_fold = |from| times.next_from(from).filter(|found| *found < self.end);
        if self.is_first_pass
            && let Some(found) = in_fold(from)
        {
            return self.first.to_timestamp(found).ok();
        }
        let from = if self.is_first_pass { self.start } else { from };
        match in_fold(from) {
            Some(found) if times.is_interval => self.second.to_timestamp(found).ok(),
            _ => first_from(times, self.end, zone),
        }
    }
}
