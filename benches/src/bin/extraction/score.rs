//! Words and parts of a content, and how many of them a Markdown text keeps.

use std::collections::HashMap;
use std::fmt;
use std::ops::AddAssign;

use url::Url;

use crate::tree::Node;

/// The words of a text with their numbers, in lower case.
#[derive(Debug, Default)]
pub(crate) struct Words(HashMap<String, usize>);

/// Precision and recall over words.
pub(crate) struct Score {
    pub(crate) precision: f64,
    pub(crate) recall: f64,
}

impl Score {
    pub(crate) fn f1(&self) -> f64 {
        2.0 * self.precision * self.recall / (self.precision + self.recall).max(f64::MIN_POSITIVE)
    }
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = HashMap::new();
        let text = text.replace('\u{200b}', "").to_lowercase();
        for word in text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            *words.entry(word.to_owned()).or_insert(0) += 1;
        }
        Self(words)
    }

    /// Returns the words of a Markdown text, without the URLs of its links.
    pub(crate) fn of_markdown(markdown: &str) -> Self {
        let mut text = String::with_capacity(markdown.len());
        let mut rest = markdown;
        while let Some(at) = rest.find("](") {
            let (before, after) = rest.split_at(at);
            // A cell may contain brackets that are no link.
            let end = after.find([')', '\n']).unwrap_or(after.len());
            text.push_str(before);
            text.push(']');
            rest = &after[(end + 1).min(after.len())..];
        }
        text.push_str(rest);
        Self::of(&text.replace("<br>", " ").replace(['\\', '*'], ""))
    }

    /// Scores `extracted` with these words; words of `either` count neither way.
    pub(crate) fn score(&self, extracted: &Self, either: &Self) -> Score {
        let mut common = 0;
        let mut total = 0;
        for (word, count) in &extracted.0 {
            let own = self.0.get(word).copied().unwrap_or(0);
            let free = either.0.get(word).copied().unwrap_or(0);
            common += own.min(*count);
            total += own.min(*count) + count.saturating_sub(own + free);
        }
        let own: usize = self.0.values().sum();
        Score {
            precision: common as f64 / total.max(1) as f64,
            recall: common as f64 / own.max(1) as f64,
        }
    }

    /// Returns the 40 most frequent words that are less frequent in `other`.
    pub(crate) fn less(&self, other: &Self) -> String {
        let missing = self.0.iter().filter_map(|(word, count)| {
            let rest = count.saturating_sub(other.0.get(word).copied().unwrap_or(0));
            (rest > 0).then_some((rest, word))
        });
        let mut missing: Vec<_> = missing.collect();
        missing.sort_unstable_by(|a, b| b.cmp(a));
        let shown = missing.iter().take(40).map(|(count, word)| format!("{word} {count}"));
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// The parts of a content by kind: how many the source has, and how many are kept.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    headings: Vec<String>,
    links: Vec<String>,
    /// Code, tables, items.
    counts: [usize; 3],
    kept: [usize; 5],
    all: [usize; 5],
}

impl Parts {
    pub(crate) const HEADER: &str = "headings, links, code, tables, items: kept of all";

    /// Counts an element of the source.
    pub(crate) fn take(&mut self, nodes: &[Node], at: usize, base: &Url) {
        let text = || {
            nodes[at..nodes[at].end]
                .iter()
                .map(|node| one_line(&node.text))
                .collect::<String>()
        };
        let is_in = |selector: &str| {
            let mut above = std::iter::successors(Some(at), |at| Some(nodes[*at].parent).filter(|parent| parent < at));
            above.any(|parent| parent != at && nodes[parent].is(selector))
        };
        match nodes[at].name.as_str() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !is_in("table") => self.headings.push(text()),
            "a" if !text().is_empty() && !is_in("pre") => {
                let href = nodes[at].attribute("href").and_then(|href| base.join(href.trim()).ok());
                self.links
                    .extend(href.filter(|url| url.scheme().starts_with("http")).map(String::from));
            }
            "pre" if !text().is_empty() && !is_in("table, pre") => self.counts[0] += 1,
            "table" if !is_in("table") && is_data(&nodes[at..nodes[at].end], at) => self.counts[1] += 1,
            "li" if !text().is_empty() && !is_in("table, nav, pre") => self.counts[2] += 1,
            _ => {}
        }
    }

    /// Returns how many of these parts a Markdown text has.
    pub(crate) fn kept_by(&self, markdown: &str) -> Self {
        let mut prose = String::new();
        let mut fences = 0;
        let mut fence: Option<&str> = None;
        for line in markdown.lines() {
            let start = line.trim_start_matches([' ', '>', '-', ':']);
            let ticks = &start[..start.len() - start.trim_start_matches('`').len()];
            match fence {
                Some(open) if ticks == open && start == open => fence = None,
                None if ticks.len() >= 3 => {
                    fence = Some(ticks);
                    fences += 1;
                }
                None => {
                    prose.push_str(line);
                    prose.push('\n');
                }
                Some(_) => {}
            }
        }
        let is_item = |line: &&str| {
            let line = line.trim_start_matches([' ', '>', ':']);
            let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
            line.starts_with("- ") || number.len() < line.len() && number.starts_with(". ")
        };
        let found = [
            fences,
            prose.lines().filter(|line| line.contains("| --- |")).count(),
            prose.lines().filter(is_item).count(),
        ];
        let headings = prose.lines().filter_map(|line| {
            let line = line.trim_start_matches([' ', '>', '-', ':']);
            line.starts_with('#').then(|| one_line(&without_urls(line)))
        });
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let links = links.map(|url| url.replace("%28", "(").replace("%29", ")"));
        let counts = [0, 1, 2].map(|kind| self.counts[kind].min(found[kind]));
        Self {
            kept: [
                common(&self.headings, headings),
                common(&self.links, links),
                counts[0],
                counts[1],
                counts[2],
            ],
            all: [
                self.headings.len(),
                self.links.len(),
                self.counts[0],
                self.counts[1],
                self.counts[2],
            ],
            ..Self::default()
        }
    }
}

impl AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        for kind in 0..self.all.len() {
            self.kept[kind] += other.kept[kind];
            self.all[kind] += other.all[kind];
        }
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.kept.iter().zip(&self.all).map(|(kept, all)| match all {
            0 => format!("{:>13}", "-"),
            all => format!(
                "{:>13}",
                format!("{kept}/{all} {:.0}%", 100.0 * *kept as f64 / *all as f64)
            ),
        });
        f.write_str(&shown.collect::<Vec<_>>().join(" "))
    }
}

/// Returns how many of `wanted` are among `found`, each counted once.
fn common(wanted: &[String], found: impl Iterator<Item = String>) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for text in wanted {
        *left.entry(text).or_insert(0) += 1;
    }
    let mut count = 0;
    for text in found {
        if let Some(number) = left.get_mut(text.as_str()).filter(|number| **number > 0) {
            *number -= 1;
            count += 1;
        }
    }
    count
}

/// Returns `true` for a table of data, which begins at number `first`: two rows or more, one of
/// them with two cells.
fn is_data(table: &[Node], first: usize) -> bool {
    let rows: Vec<usize> = (0..table.len()).filter(|at| table[*at].is("tr")).collect();
    let cells = |row: usize| {
        table[row..table[row].end - first]
            .iter()
            .filter(|node| node.is("td, th"))
            .count()
    };
    rows.len() > 1
        && !table[1..]
            .iter()
            .any(|node| node.is("table, ul, ol, h1, h2, h3, h4, pre"))
        && rows.into_iter().any(|row| cells(row) > 1)
}

fn without_urls(line: &str) -> String {
    let mut parts = line.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once(')').map_or("", |(_, rest)| rest)
    })
}

/// Returns the letters and digits of a text in lower case.
fn one_line(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}
