//! Time zones by name.

use jiff::tz::{self, TimeZone};
use rockbot_core::Timestamp;
use rockbot_core::support::nearest_names;

/// Maximum number of suggestions for an unknown name.
const SUGGESTIONS: usize = 3;

/// A named time zone.
#[derive(Debug)]
pub(super) struct Zone {
    name: String,
    zone: TimeZone,
}

/// The error for an unknown time zone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no time zone: give an IANA name such as `Europe/Paris`{}", did_you_mean(.nearest))]
pub(super) struct UnknownTimeZone {
    name: String,
    nearest: Vec<String>,
}

/// Returns the zone of this name, ignoring case.
pub(super) fn find(name: &str) -> Result<Zone, UnknownTimeZone> {
    let found = TimeZone::get(name.trim()).ok().filter(|zone| !zone.is_unknown());
    let found = found.and_then(|zone| {
        let name = zone.iana_name()?.to_owned();
        Some(Zone { name, zone })
    });
    found.ok_or_else(|| UnknownTimeZone {
        name: name.to_owned(),
        nearest: nearest(name),
    })
}

impl Zone {
    /// Returns its IANA name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Describes the local time at `now`.
    pub(super) fn local_time(&self, now: Timestamp) -> String {
        let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(millis) {
            Ok(now) => {
                let now = now.to_zoned(self.zone.clone());
                format!("In {} it is {}.", self.name, now.strftime("%A, %-d %B %Y, %H:%M %:z"))
            }
            // Reached only for clocks beyond the year 9999.
            Err(_) => format!("What time it is in {} is not known.", self.name),
        }
    }
}

/// Returns the zones of places with similar names: users name their city, and mistype.
fn nearest(name: &str) -> Vec<String> {
    let name = name.trim().replace(' ', "_");
    let zones: Vec<String> = tz::db().available().map(|zone| zone.to_string()).collect();
    let zones = || zones.iter().filter(|zone| zone.contains('/'));
    let mut places: Vec<_> = zones().map(|zone| place(zone)).collect();
    places.sort_unstable();
    places.dedup();
    let near = nearest_names(place(&name), places.into_iter(), SUGGESTIONS);
    let near = near
        .into_iter()
        .flat_map(|near| zones().filter(move |zone| place(zone) == near));
    near.take(SUGGESTIONS).cloned().collect()
}

/// Returns the last segment of a name.
fn place(zone: &str) -> &str {
    zone.rsplit('/').next().unwrap_or(zone)
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        nearest => format!("; did you mean `{}`?", nearest.join("` or `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Result<&str, &str>) {
        let found = find(name);
        let found = found.as_ref().map(Zone::name).map_err(ToString::to_string);
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_zone_is_known_by_its_name() {
        check("Europe/Paris", Ok("Europe/Paris"));
        check(" asia/kolkata ", Ok("Asia/Kolkata"));
        check("utc", Ok("UTC"));
    }

    #[test]
    fn what_is_no_zone_is_told_with_the_nearest_ones() {
        let told = "is no time zone: give an IANA name such as `Europe/Paris`";
        for (name, meant) in [
            ("Paris", "; did you mean `Europe/Paris`?"),
            ("Europe/Pariss", "; did you mean `Europe/Paris`?"),
            ("New York", "; did you mean `America/New_York`?"),
            ("Mars/Olympus_Mons", ""),
            ("Etc/Unknown", ""),
            ("+02:00", ""),
            ("", ""),
            ("../../etc/passwd", ""),
        ] {
            check(name, Err(&format!("`{name}` {told}{meant}")));
        }
    }

    #[test]
    fn the_local_time_is_that_of_the_place() {
        let now = Timestamp::from_millis(1_782_000_059_999);
        let zone = find("Asia/Kolkata").unwrap();
        assert_eq!(
            zone.local_time(now),
            "In Asia/Kolkata it is Sunday, 21 June 2026, 05:30 +05:30."
        );
        let zone = find("UTC").unwrap();
        assert_eq!(
            zone.local_time(Timestamp::from_millis(u64::MAX)),
            "What time it is in UTC is not known."
        );
    }
}
