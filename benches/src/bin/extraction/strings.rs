//! Pages with strings that must and must not be in their content.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use rockbot_tools::web::main_content;
use serde::Deserialize;

/// The known strings of a page.
#[derive(Debug, Deserialize)]
struct Known {
    file: String,
    with: Vec<String>,
    without: Vec<String>,
}

/// Strings that were found and were not.
#[derive(Default)]
struct Tally {
    pages: usize,
    right: usize,
    wrong: usize,
    missing: usize,
}

impl Tally {
    fn print(&self, name: &str) {
        let share = |of: usize| self.right as f64 / (self.right + of).max(1) as f64;
        let precision = share(self.wrong);
        let recall = share(self.missing);
        let f1 = 2.0 * precision * recall / (precision + recall);
        println!(
            "{name:8} {:4} pages: precision {precision:.3}, recall {recall:.3}, F1 {f1:.3}",
            self.pages
        );
    }
}

/// Prints precision, recall and F1 of the pages with even numbers, which heuristics may be fitted
/// to, of the others, and of all. With the variable `MISSES`, it prints each string of the first
/// half that is missing or too much.
pub(crate) fn run(file: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let pages: BTreeMap<String, Known> = serde_json::from_slice(&std::fs::read(file)?)?;
    let tells = std::env::var_os("MISSES").is_some();
    let mut tuned = Tally::default();
    let mut held_out = Tally::default();
    for (number, known) in pages.values().enumerate() {
        let Some(path) = place_of(folder, &known.file) else {
            continue;
        };
        let html = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let text = plain(&main_content(&html, None).markdown);
        let is_tuned = number % 2 == 0;
        let tally = if is_tuned { &mut tuned } else { &mut held_out };
        tally.pages += 1;
        for (string, is_wanted) in known.strings() {
            let is_found = text.contains(&plain(string));
            tally.right += usize::from(is_found && is_wanted);
            tally.wrong += usize::from(is_found && !is_wanted);
            tally.missing += usize::from(!is_found && is_wanted);
            if tells && is_tuned && is_found != is_wanted {
                let what = if is_wanted { "missing " } else { "too much" };
                println!("{what} {}: {string}", known.file);
            }
        }
    }
    tuned.print("tuned");
    held_out.print("held out");
    let all = Tally {
        pages: tuned.pages + held_out.pages,
        right: tuned.right + held_out.right,
        wrong: tuned.wrong + held_out.wrong,
        missing: tuned.missing + held_out.missing,
    };
    all.print("all");
    Ok(())
}

impl Known {
    /// Returns the strings, each with `true` if it is part of the content.
    fn strings(&self) -> impl Iterator<Item = (&str, bool)> {
        let with = self.with.iter().map(|string| (string.as_str(), true));
        with.chain(self.without.iter().map(|string| (string.as_str(), false)))
    }
}

fn place_of(folder: &Path, file: &str) -> Option<PathBuf> {
    let places = [
        folder.join(file),
        folder.join("cache").join(file),
        folder.join("eval").join(file),
    ];
    places.into_iter().find(|path| path.is_file())
}

/// Returns a text without marks of Markdown, in lower case, with one space between words.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        plain.push_str(&rest[..at]);
        let after = &rest[at..];
        rest = &after[after.find([')', '\n']).map_or(after.len(), |end| end + 1)..];
    }
    plain.push_str(rest);
    let plain = plain
        .replace("<br>", " ")
        .replace(['\\', '*', '[', ']', '`', '|', '#', '>', '"', '~', '_'], " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
