//! One polite retry: when it helps, as late as the server asks, never past the deadline.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use reqwest::header::HeaderMap;
use rockbot_core::Timestamp;
use rockbot_core::chat::ChatError;
use tokio::time::Instant;

/// How often and how late is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryPolicy {
    /// How many retries a call gets.
    pub(super) retries: u32,
    /// The longest wait, whatever the server asks for.
    pub(super) max_wait: Duration,
    /// The longest wait before the first retry when the server asks for none; doubled for each further one.
    pub(super) back_off: Duration,
    /// A number from 0 to 1 that spreads the waits of many clients.
    pub(super) jitter: fn() -> f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 1,
            max_wait: Duration::from_secs(30),
            back_off: Duration::from_millis(500),
            jitter: random,
        }
    }
}

/// An attempt that failed, and whether another one may help.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ChatError,
    pub(super) retry_helps: bool,
}

impl From<ChatError> for Failure {
    fn from(error: ChatError) -> Self {
        Self {
            retry_helps: error.kind().retry_helps(),
            error,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before the next attempt; `None` when there should be none.
    pub(super) fn wait(&self, failure: &Failure, retries_done: u32, now: Instant, until: Instant) -> Option<Duration> {
        if !failure.retry_helps || retries_done >= self.retries {
            return None;
        }
        let back_off = || {
            let longest = self.back_off.saturating_mul(1 << retries_done.min(16));
            longest.mul_f64((self.jitter)().clamp(0.0, 1.0))
        };
        let wait = failure.error.retry_after().unwrap_or_else(back_off).min(self.max_wait);
        (wait < until.saturating_duration_since(now)).then_some(wait)
    }
}

/// What the server advises in its headers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Advice {
    /// Whether to try again at all.
    pub(super) should_retry: Option<bool>,
    /// When.
    pub(super) after: Option<Duration>,
}

impl Advice {
    /// Reads `x-should-retry`, `retry-after-ms` and `retry-after`; what cannot be understood is ignored.
    pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let should_retry = match text("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let millis = text("retry-after-ms").and_then(|text| duration(text, 1e-3));
        let after = millis.or_else(|| {
            let text = text("retry-after")?;
            duration(text, 1.0).or_else(|| Some(http_date(text)?.since(now)))
        });
        Self { should_retry, after }
    }
}

fn duration(text: &str, unit: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok()
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, date) = text.split_once(", ")?;
    let [day, month, year, time, "GMT"] = date.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let number = |text: &str, range: std::ops::RangeInclusive<u64>| {
        let number = text.parse::<u64>().ok()?;
        range.contains(&number).then_some(number)
    };
    let [hour, minute, second] = time.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let days = days_since_1970(number(year, 1970..=9999)?, month, number(day, 1..=31)?);
    let seconds = number(hour, 0..=23)? * 3600 + number(minute, 0..=59)? * 60 + number(second, 0..=60)?;
    Some(Timestamp::from_millis((days * 86_400 + seconds) * 1000))
}

/// Counts years from March, so that the leap day is the last of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

/// Randomness that the standard library gathered for its hash maps: enough to spread waits.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use rockbot_core::chat::ChatErrorKind;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], should_retry: Option<bool>, after_ms: Option<u64>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let after = after_ms.map(Duration::from_millis);
        assert_eq!(Advice::read(&headers, NOW), Advice { should_retry, after });
    }

    #[test]
    fn the_server_is_obeyed() {
        check(&[], None, None);
        check(&[("retry-after", "2")], None, Some(2000));
        check(&[("retry-after", "0.25")], None, Some(250));
        check(&[("retry-after-ms", "1500"), ("retry-after", "9")], None, Some(1500));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], None, Some(10_000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], None, Some(0));
        check(
            &[("x-should-retry", "false"), ("retry-after", "1")],
            Some(false),
            Some(1000),
        );
        check(&[("x-should-retry", "true")], Some(true), None);
    }

    #[test]
    fn nonsense_is_ignored() {
        for value in [
            "-1",
            "NaN",
            "inf",
            "1e300",
            "soon",
            "",
            "Sun, 99 Nov 1994 08:49:47 GMT",
            "Sun, 06 Nov",
        ] {
            check(&[("retry-after", value)], None, None);
        }
        check(&[("retry-after-ms", "soon"), ("retry-after", "3")], None, Some(3000));
        check(&[("x-should-retry", "maybe")], None, None);
    }

    #[test]
    fn dates_are_counted_as_the_calendar_does() {
        let seconds = |text| http_date(text).unwrap().as_millis() / 1000;
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), 784_111_777);
        assert_eq!(seconds("Thu, 29 Feb 2024 12:00:00 GMT"), 1_709_208_000);
        assert_eq!(seconds("Fri, 01 Mar 2024 00:00:00 GMT"), 1_709_251_200);
    }

    fn failure(kind: ChatErrorKind, after_ms: Option<u64>) -> Failure {
        let error = ChatError::new(kind, "x");
        match after_ms {
            Some(after) => error.with_retry_after(Duration::from_millis(after)),
            None => error,
        }
        .into()
    }

    #[track_caller]
    fn check_wait(failure: &Failure, retries_done: u32, left_ms: u64, expected_ms: Option<u64>) {
        let policy = RetryPolicy {
            retries: 3,
            jitter: || 0.5,
            ..RetryPolicy::default()
        };
        let now = Instant::now();
        let until = now + Duration::from_millis(left_ms);
        let expected = expected_ms.map(Duration::from_millis);
        assert_eq!(policy.wait(failure, retries_done, now, until), expected);
    }

    #[test]
    fn waits_are_spread_doubled_and_bounded() {
        use ChatErrorKind::*;
        check_wait(&failure(Overloaded, None), 0, 60_000, Some(250));
        check_wait(&failure(Overloaded, None), 2, 60_000, Some(1000));
        check_wait(&failure(RateLimited, Some(2000)), 0, 60_000, Some(2000));
        check_wait(&failure(RateLimited, Some(99_999_999_000)), 0, 60_000, Some(30_000));
    }

    #[test]
    fn there_is_no_retry_when_it_cannot_help() {
        use ChatErrorKind::*;
        check_wait(&failure(Overloaded, None), 3, 60_000, None);
        check_wait(&failure(RateLimited, Some(2000)), 0, 2000, None);
        check_wait(&failure(Auth, None), 0, 60_000, None);
        let mut obeyed = failure(Overloaded, None);
        obeyed.retry_helps = false;
        check_wait(&obeyed, 0, 60_000, None);
    }

    #[test]
    fn jitter_is_random_and_in_range() {
        let all: Vec<f64> = (0..100).map(|_| random()).collect();
        assert!(all.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(all.iter().any(|number| *number < 0.5) && all.iter().any(|number| *number >= 0.5));
    }
}
