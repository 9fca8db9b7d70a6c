//! A finished run in the index.

use rockbot_core::Timestamp;

use super::segment::RecordLocation;

/// The first and the last line of a finished run, in 28 bytes.
///
/// A busy journal keeps millions of them for a day, so they consist of words without gaps between
/// them, and the digest of the message stays on the disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedRun {
    first_segment: u32,
    /// 0 for a line after the first 4 GiB of a segment.
    first_offset: u32,
    last_segment: u32,
    last_offset: [u32; 2],
    at: [u32; 2],
}

impl EndedRun {
    pub(super) fn new(first: RecordLocation, last: RecordLocation, at: Timestamp) -> Self {
        Self {
            first_segment: first.segment,
            first_offset: u32::try_from(first.offset).unwrap_or(0),
            last_segment: last.segment,
            last_offset: halves(last.offset),
            at: halves(at.as_millis()),
        }
    }

    pub(super) fn first_segment(&self) -> u32 {
        self.first_segment
    }

    /// Returns the location of the beginning of a line, at or before the first line.
    pub(super) fn first(&self) -> RecordLocation {
        RecordLocation {
            segment: self.first_segment,
            offset: self.first_offset.into(),
        }
    }

    /// Returns the location of the last line, which has the outcome.
    pub(super) fn last(&self) -> RecordLocation {
        RecordLocation {
            segment: self.last_segment,
            offset: whole(self.last_offset),
        }
    }

    /// Returns the time of the end.
    pub(super) fn at(&self) -> Timestamp {
        Timestamp::from_millis(whole(self.at))
    }
}

fn halves(number: u64) -> [u32; 2] {
    [(number >> 32) as u32, number as u32]
}

fn whole([high, low]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::super::run_hash::RunHash;
    use super::*;

    #[test]
    fn is_small_and_keeps_large_numbers() {
        assert_eq!(size_of::<(RunHash, EndedRun)>(), 44);
        let location = |segment, offset| RecordLocation { segment, offset };
        let last = location(u32::MAX, u64::MAX - 1);
        let at = Timestamp::from_millis(u64::MAX - 2);
        let ended = EndedRun::new(location(7, 9), last, at);
        assert_eq!((ended.first(), ended.last(), ended.at()), (location(7, 9), last, at));
        let far = EndedRun::new(location(7, 1 << 32), last, at);
        assert_eq!(far.first(), location(7, 0));
    }
}
