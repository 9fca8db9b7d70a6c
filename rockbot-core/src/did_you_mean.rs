//! Which known name was probably meant by an unknown one.

/// The known name that was probably meant by `given`.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_names(given, known, 1).pop()
}

/// The `most` known names that were most probably meant by `given`, the likeliest first: those that differ from it, apart
/// from their case, in a third of its characters or less.
///
/// ```
/// use rockbot_core::nearest_names;
///
/// let known = ["Parma", "Prague", "Paris", "Oslo"];
/// assert_eq!(nearest_names("pariss", known.into_iter(), 2), ["Paris"]);
/// ```
pub fn nearest_names<'a>(given: &str, known: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let given = given.to_lowercase();
    let allowed = given.chars().count() / 3;
    let mut near: Vec<_> = known
        .map(|name| (distance(&given, &name.to_lowercase(), allowed), name))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, name)| name).take(most).collect()
}

/// How many characters must be added, removed or replaced; a number above `limit` when it is surely more.
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
