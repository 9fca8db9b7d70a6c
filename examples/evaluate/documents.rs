//! Long generated documents, each with one fact at a known position and similar statements as
//! distractors.

use std::fmt::Write;

/// A generated document: its approximate length, and the position of the fact.
struct Document {
    name: &'static str,
    chars: usize,
    percent: usize,
    heading: &'static str,
    fact: &'static str,
}

const DOCUMENTS: [Document; 11] = [
    of(
        "handbook",
        30_000,
        10,
        "North gate",
        "The access code of the north gate is 4711.",
    ),
    of(
        "minutes",
        30_000,
        35,
        "Election",
        "Ulrike Sandoval was elected treasurer of the club.",
    ),
    of(
        "contract",
        30_000,
        60,
        "Termination",
        "The notice period for the tenant is 395 days.",
    ),
    of(
        "logbook",
        30_000,
        80,
        "Pump 6",
        "Pump 6 was replaced by the technician Iwan Bartok.",
    ),
    of(
        "inventory",
        30_000,
        95,
        "Telescopes",
        "There are 2839 telescopes in the cellar.",
    ),
    of(
        "report",
        90_000,
        5,
        "Harvest",
        "The harvest of cherries was 6150 tonnes.",
    ),
    of(
        "guidelines",
        90_000,
        30,
        "Travel",
        "The daily allowance for trips to Quito is 985 pesos.",
    ),
    of(
        "archive",
        90_000,
        75,
        "Lighthouse",
        "The lighthouse was built by Perpetua Quill.",
    ),
    of(
        "manual",
        90_000,
        90,
        "Valve",
        "The safety valve opens at 5325 millibars.",
    ),
    of(
        "survey",
        90_000,
        98,
        "Bridges",
        "The oldest bridge of the county is the Wexcombe bridge.",
    ),
    of(
        "ledger",
        30_000,
        50,
        "Grant",
        "The grant for the observatory was 9440 euros.",
    ),
];

const fn of(name: &'static str, chars: usize, percent: usize, heading: &'static str, fact: &'static str) -> Document {
    Document {
        name,
        chars,
        percent,
        heading,
        fact,
    }
}

/// Returns the document of this name, ignoring case and the file extension.
pub(crate) fn document(name: &str) -> Option<String> {
    let name = name.trim().to_lowercase();
    let name = name.split('.').next().unwrap_or_default();
    DOCUMENTS.iter().find(|document| document.name == name).map(write)
}

const THINGS: [&str; 12] = [
    "garden", "workshop", "harbour", "library", "kitchen", "stable", "museum", "laundry", "office", "theatre",
    "bakery", "garage",
];
const SAYINGS: [&str; 7] = [
    "The {thing} was inspected in the usual way, and nothing was found that calls for action.",
    "Everybody who works in the {thing} was asked, and most were content with how things are.",
    "The access to the {thing} stays as it is until the committee has come to another view.",
    "A new floor for the {thing} was proposed; the costs are not known yet.",
    "Visitors of the {thing} are asked to leave their coats at the entrance.",
    "The lamps of the {thing} were cleaned, and two of them were found to be old.",
    "Whoever has the key of the {thing} gives it back in the evening.",
];

fn write(document: &Document) -> String {
    let mut text = format!("# The {}\n\n", document.name);
    let at = document.chars * document.percent / 100;
    let mut section = 0;
    let mut is_told = false;
    while text.len() < document.chars {
        if text.len() >= at && !is_told {
            section_of(&mut text, document.heading, document.fact);
            is_told = true;
        }
        let thing = THINGS[section % THINGS.len()];
        let sayings: Vec<_> = (0..5)
            .map(|saying| SAYINGS[(section * 3 + saying) % SAYINGS.len()])
            .collect();
        section_of(
            &mut text,
            &format!("Part {section}: {thing}"),
            &sayings.join(" ").replace("{thing}", thing),
        );
        section += 1;
    }
    text
}

fn section_of(text: &mut String, heading: &str, body: &str) {
    write!(text, "## {heading}\n\n{body}\n\n").expect("a String takes everything");
}
