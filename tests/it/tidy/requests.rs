//! Each setter of a request has a user in the examples, and an example in its documentation.

use super::source::{root, rust_files};

/// The setters of a file, each with its documentation.
fn setters(file: &str) -> Vec<(String, String)> {
    let source = std::fs::read_to_string(root().join(file)).expect("a source file");
    let mut docs = String::new();
    let mut found = Vec::new();
    for line in source.lines() {
        match (line.trim_start().strip_prefix("///"), line.strip_prefix("    pub fn ")) {
            (Some(doc), _) => docs.push_str(doc),
            (None, Some(item)) => {
                let (name, takes) = item.split_once(['(', '<']).expect("a function");
                // Behind the generics, if any.
                let takes = takes.split_once(">(").map_or(takes, |(_, takes)| takes);
                let docs = std::mem::take(&mut docs);
                if takes.starts_with("self") || takes.starts_with("mut self") {
                    found.push((name.to_owned(), docs));
                }
            }
            (None, None) if line.trim_start().starts_with('#') => {}
            (None, None) => docs.clear(),
        }
    }
    found
}

fn used_in(text: &str, name: &str) -> bool {
    text.contains(&format!(".{name}(")) || text.contains(&format!(".{name}::<"))
}

#[test]
fn each_setter_of_a_question_has_an_example_and_a_user() {
    let files = ["request", "output"].map(|file| setters(&format!("rockbot-host/src/agent/{file}.rs")));
    let setters = files.concat();
    assert!(setters.len() > 14, "the setters were found: {setters:?}");
    let programs = ["examples", "rockbot-cli/src"].map(|folder| rust_files(&root().join(folder)));
    let asks = programs.into_iter().flatten().filter_map(|file| {
        let text = std::fs::read_to_string(file).expect("a source file");
        // These builders have methods of the same names.
        let builds = text.contains("AgentHost::configured(") || text.contains("AgentHost::in_memory(");
        (!builds).then_some(text)
    });
    let asks: String = asks.collect();
    let without: Vec<_> = setters
        .iter()
        .filter(|(name, docs)| !used_in(docs, name) || !used_in(&asks, name))
        .map(|(name, _)| name)
        .collect();
    assert!(
        without.is_empty(),
        "these setters need an example in their documentation, and a place in `rockbot-cli` or \
         `examples/full_agent`: {without:?}"
    );
}

#[test]
fn each_setter_of_a_turn_stands_in_an_example_of_its_documentation() {
    let file = "rockbot-core/src/turn/request.rs";
    let setters = setters(file);
    let setters: Vec<_> = setters.iter().filter(|(name, _)| name.starts_with("with_")).collect();
    assert!(setters.len() > 17, "the setters were found: {setters:?}");
    let source = std::fs::read_to_string(root().join(file)).expect("a source file");
    let docs: String = source
        .lines()
        .filter(|line| line.trim_start().starts_with("///"))
        .collect();
    let without: Vec<_> = setters
        .iter()
        .filter(|(name, _)| !used_in(&docs, name))
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "no example uses {without:?}");
}
