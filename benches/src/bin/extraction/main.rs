//! Measures the extraction of main content from real pages.
//!
//! `extraction pages ROOT [PAGE]`: pages of documentation packages below the folder ROOT, of
//! which half have hand-marked main content (`benches/data/pages.json`). It prints precision,
//! recall and F1 over words, and the share of the headings, links, code, tables and list items of
//! the source that the Markdown keeps. With PAGE, a part of a path, it prints what differs.
//!
//! `extraction strings FILE FOLDER`: pages in FOLDER, with the strings that must and must not be
//! in their content, in the form of trafilatura's `evaldata.json`. It prints precision, recall
//! and F1 over strings; pages that are not there are skipped.

mod marks;
mod score;
mod source;
mod strings;
mod tree;

use std::error::Error;
use std::path::Path;

use marks::Mark;
use rockbot_tools::web::{html_to_markdown, main_content};
use score::{Parts, Words};
use source::Source;
use url::Url;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pages", root] => pages(Path::new(root), None),
        ["pages", root, page] => pages(Path::new(root), Some(page)),
        ["strings", file, folder] => strings::run(Path::new(file), Path::new(folder)),
        _ => Err("expected `pages ROOT [PAGE]` or `strings FILE FOLDER`".into()),
    }
}

/// Sums of the scores of some pages.
#[derive(Default)]
struct Sum {
    pages: usize,
    f1: f64,
    precision: f64,
    recall: f64,
    parts: Parts,
}

impl Sum {
    fn print(&self, name: &str) {
        let mean = |sum: f64| sum / self.pages.max(1) as f64;
        let p = mean(self.precision);
        let r = mean(self.recall);
        let f1 = mean(self.f1);
        println!("{name:50} {p:6.3} {r:6.3} {f1:6.3}  {}", self.parts);
    }
}

fn pages(root: &Path, only: Option<&str>) -> Result<(), Box<dyn Error>> {
    println!(
        "{:50} {:>6} {:>6} {:>6}  {}",
        "page",
        "prec.",
        "recall",
        "F1",
        Parts::HEADER
    );
    let mut tuned = Sum::default();
    let mut held_out = Sum::default();
    let mut whole = Sum::default();
    for mark in marks::read()? {
        if only.is_some_and(|part| !mark.page.contains(part)) {
            continue;
        }
        let bytes = std::fs::read(root.join(&mark.page))
            .map_err(|error| format!("{}: {error}; install or unpack `{}`", mark.page, mark.package))?;
        let html = String::from_utf8_lossy(&bytes).into_owned();
        let base = Url::parse(&format!("https://docs.example/{}", mark.page))?;
        let source = Source::parse(&html, &base);
        whole.pages += 1;
        whole.parts += source.whole().parts.kept_by(&html_to_markdown(&html, Some(&base)));
        if mark.main.is_some() {
            let sum = if mark.held_out { &mut held_out } else { &mut tuned };
            marked(
                &mark,
                &source,
                &main_content(&html, Some(&base)).markdown,
                sum,
                only.is_some(),
            )?;
        }
    }
    tuned.print(&format!("marked, {} pages", tuned.pages));
    held_out.print(&format!("marked and held out, {} pages", held_out.pages));
    println!(
        "{:50} {:20}  {}",
        format!("converted whole, {} pages", whole.pages),
        "",
        whole.parts
    );
    Ok(())
}

/// Scores the extracted content of a page with a hand-marked one.
fn marked(mark: &Mark, source: &Source, markdown: &str, sum: &mut Sum, tells: bool) -> Result<(), Box<dyn Error>> {
    let content = source.marked(mark)?;
    let extracted = Words::of_markdown(markdown);
    let score = content.words.score(&extracted, &content.either);
    let parts = content.parts.kept_by(markdown);
    let name: String = mark
        .page
        .chars()
        .rev()
        .take(48)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    println!(
        "{name:50} {:6.3} {:6.3} {:6.3}  {parts}",
        score.precision,
        score.recall,
        score.f1()
    );
    if tells {
        println!("missing: {}", content.words.less(&extracted));
        println!("too much: {}", extracted.less(&content.words));
    }
    sum.pages += 1;
    sum.precision += score.precision;
    sum.recall += score.recall;
    sum.f1 += score.f1();
    sum.parts += parts;
    Ok(())
}
