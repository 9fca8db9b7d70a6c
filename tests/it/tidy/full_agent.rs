//! The example `full_agent` uses everything that a builder offers.

use super::source::{root, rust_files};

/// Methods of the builder that it leaves out, each with the reason.
const LEFT_OUT: [(&str, &str); 17] = [
    (
        "announce_tools",
        "`serve_tools` with announcements, as the worker of `distributed` has it",
    ),
    ("budget", "the settings have it"),
    ("capture_content", "logs without what people write"),
    ("chat", "the settings have it"),
    ("clock", "for tests"),
    ("give", "for subsystems"),
    ("handle_named", "`handle` with another name"),
    ("history", "the settings have it"),
    ("ids", "for tests"),
    ("instructions", "the profile has them"),
    ("identity", "the settings have it"),
    ("message_options", "the defaults fit"),
    ("registry", "its own fits"),
    ("shared_bus", "`bus` for many owners"),
    ("stores", "files in the data folder"),
    ("subscribe_to", "messages with a topic subscribe by themselves"),
    ("without_data_dir", "for doctors and tests"),
];

fn read(paths: impl IntoIterator<Item = std::path::PathBuf>) -> String {
    let texts = paths
        .into_iter()
        .map(|path| std::fs::read_to_string(path).expect("a source file"));
    texts.collect()
}

#[test]
fn the_full_agent_uses_all_of_the_builder() {
    let builder = read(rust_files(&root().join("rockbot-host/src/host/builder")));
    let offered = builder.lines().filter_map(|line| {
        let (name, takes) = line.strip_prefix("    pub fn ")?.split_once(['(', '<'])?;
        // What begins with `with_` belongs to the options of one method.
        (takes.starts_with("mut self") || takes.contains("(mut self") || takes.starts_with("self"))
            .then_some(name)
            .filter(|name| !name.starts_with("with_"))
    });
    let offered: Vec<_> = offered.collect();
    assert!(offered.len() > 30, "the builder was found: {offered:?}");

    let example = rust_files(&root().join("examples/full_agent"));
    let used = read(example.into_iter().chain([root().join("src/configured.rs")]));
    let uses = |name: &&str| used.contains(&format!(".{name}("));
    let left_out = |name: &&str| LEFT_OUT.iter().any(|(left, _)| left == name);
    let missing: Vec<_> = offered.iter().filter(|name| !uses(name) && !left_out(name)).collect();
    assert!(missing.is_empty(), "examples/full_agent leaves out {missing:?}");
    let stale: Vec<_> = LEFT_OUT.iter().filter(|(name, _)| !offered.contains(name)).collect();
    assert!(stale.is_empty(), "the builder has no {stale:?}");
}
