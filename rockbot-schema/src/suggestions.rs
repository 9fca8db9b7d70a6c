//! Suggestions for misspelled names, by edit distance.

/// Returns the known name that is nearest to `given`, if one is near enough.
pub fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_names(given, known, 1).pop()
}

/// Returns at most `max` known names that are near to `given`, the nearest first.
///
/// A name is near if at most a third of the characters of `given` must be inserted, deleted or
/// replaced to turn one into the other (Levenshtein distance), ignoring case. Names at the same
/// distance are in alphabetical order. Texts of more than 64 characters have no near names, which
/// bounds the cost for untrusted input.
///
/// ```
/// use rockbot_schema::nearest_names;
///
/// let known = ["Parma", "Prague", "Paris", "Oslo"];
/// assert_eq!(nearest_names("pariss", known.into_iter(), 2), ["Paris"]);
/// ```
pub fn nearest_names<'a>(given: &str, known: impl Iterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let given = given.to_lowercase();
    let allowed = given.chars().count() / 3;
    let mut near: Vec<_> = known
        .map(|name| (distance(&given, &name.to_lowercase(), allowed), name))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, name)| name).take(max).collect()
}

/// Returns the Levenshtein distance of two texts, or some number above `limit` if the distance is
/// surely above it.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let b: Vec<char> = b.chars().collect();
    let length = a.chars().count();
    if length.abs_diff(b.len()) > limit || length > 64 {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
