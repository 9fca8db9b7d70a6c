//! A server's advice on retrying, from its headers.

use std::time::Duration;

use reqwest::header::HeaderMap;
use rockbot_core::Timestamp;

/// A server's advice on retrying.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryAdvice {
    /// `x-should-retry`: `false` if a retry cannot help, `None` if the server gives no advice.
    pub(super) should_retry: Option<bool>,
    /// Time to wait before a retry.
    pub(super) after: Option<Duration>,
}

impl RetryAdvice {
    /// Reads `x-should-retry`, `retry-after-ms` and `retry-after`; values that cannot be understood
    /// are ignored.
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

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use rockbot_core::testing::Mutations;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], should_retry: Option<bool>, after_ms: Option<u64>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let after = after_ms.map(Duration::from_millis);
        assert_eq!(RetryAdvice::read(&headers, NOW), RetryAdvice { should_retry, after });
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

    #[test]
    fn broken_advice_is_bounded_and_no_surprise() {
        let corpus = [
            "2",
            "0.25",
            "Sun, 06 Nov 1994 08:49:47 GMT",
            "1e30",
            "false",
            "Wed, 31 Dec 9999 23:59:60 GMT",
        ];
        Mutations::of(corpus).check(|text| {
            let Ok(value) = HeaderValue::from_bytes(text) else {
                return;
            };
            for name in ["retry-after", "retry-after-ms", "x-should-retry"] {
                let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value.clone())]);
                let advice = RetryAdvice::read(&headers, Timestamp::from_millis(0));
                assert!(name != "x-should-retry" || advice.after.is_none());
            }
        });
    }
}
