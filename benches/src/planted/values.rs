//! The values of a record, drawn by a reproducible sequence of numbers.

use std::collections::BTreeMap;

use super::template::Data;

/// A reproducible sequence of pseudo-random numbers (splitmix64).
#[derive(Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number, less than `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// The values of a record by the names that stand for them.
#[derive(Debug)]
pub(super) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// Draws a value of each pool, and numbers, dates and codes.
    pub(super) fn draw(data: &Data, numbers: &mut Numbers) -> Self {
        let mut values = BTreeMap::new();
        for (name, pool) in data.pools.iter().chain(
            ALSO.map(|(name, pool)| (name, &data.pools[pool]))
                .iter()
                .map(|(name, pool)| (name, *pool)),
        ) {
            values.insert(*name, pool[numbers.below(pool.len())].to_owned());
        }
        let mut draw = |from: usize, to: usize| from + numbers.below(to - from);
        values.insert("number", draw(2, 90).to_string());
        values.insert("big", draw(100, 90_000).to_string());
        values.insert("year", draw(1700, 2020).to_string());
        values.insert("time", format!("{:02}:{:02}", draw(5, 23), draw(0, 60)));
        values.insert("price", format!("{}.{:02}", draw(1, 300), draw(0, 100)));
        values.insert("phone", format!("+49 {} {}", draw(200, 999), draw(100_000, 999_999)));
        values.insert(
            "date",
            format!("{}-{:02}-{:02}", draw(1990, 2026), draw(1, 13), draw(1, 29)),
        );
        values.insert("version", format!("{}.{}.{}", draw(0, 9), draw(0, 40), draw(0, 20)));
        values.insert(
            "node",
            format!("{}-{:02}", ["atlas", "boreas", "ceres"][draw(0, 3)], draw(1, 99)),
        );
        values.insert("errorcode", format!("E{}", draw(1_000, 99_999)));
        values.insert(
            "sku",
            format!("{}{}-{}", ['K', 'M', 'R'][draw(0, 3)], draw(10, 99), draw(1_000, 9_999)),
        );
        values.insert("sampleid", format!("S-{}/{}", draw(10, 99), draw(10_000, 99_999)));
        Self(values)
    }

    /// Returns `template` with values for the names in braces.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            text.push_str(before);
            let (name, after) = behind.split_once('}').unwrap_or((behind, ""));
            let (name, style) = name.split_once(':').unwrap_or((name, ""));
            // Braces of code stand for themselves.
            match self.0.get(name) {
                Some(value) => {
                    text.push_str(&styled(value, style));
                    rest = after;
                }
                None => {
                    text.push('{');
                    rest = behind;
                }
            }
        }
        text + rest
    }
}

/// Names for a second value of a pool.
const ALSO: [(&str, &str); 2] = [("to", "place"), ("toending", "ending")];

fn styled(value: &str, style: &str) -> String {
    let words = || {
        value
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
    };
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    match style {
        "snake" => words().collect::<Vec<_>>().join("_").to_lowercase(),
        "upper" => words().collect::<Vec<_>>().join("_").to_uppercase(),
        "camel" => words()
            .enumerate()
            .map(|(at, word)| if at == 0 { word.to_owned() } else { capital(word) })
            .collect(),
        "plain" => value.chars().map(plain).collect(),
        _ => value.to_owned(),
    }
}

/// Returns the letter without its accent.
fn plain(c: char) -> char {
    const ACCENTED: &str = "ąáåçÇÅéëęıíłŁñóöōřšúüùýżžź";
    const LETTERS: &str = "aaacCAeeeiilLnooorsuuuyzzz";
    let at = ACCENTED.chars().position(|accented| accented == c);
    at.and_then(|at| LETTERS.chars().nth(at)).unwrap_or(c)
}
