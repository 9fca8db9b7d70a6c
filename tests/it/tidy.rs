//! What must hold for the repository itself: licences, sources, who depends on whom, complete lists.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "OpenSSL",
    "Unicode-3.0",
    "Zlib",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What is built here: other platforms' packages need not be on this machine.
fn metadata() -> Value {
    let version = output("rustc", &["-vV"]);
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("rustc names its host");
    let metadata = output(
        env!("CARGO"),
        &[
            "metadata",
            "--format-version",
            "1",
            "--all-features",
            "--offline",
            "--filter-platform",
            host,
        ],
    );
    serde_json::from_str(&metadata).expect("cargo prints JSON")
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("the toolchain can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the toolchain prints UTF-8")
}

fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().expect("packages")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// One alternative of every `AND`ed part must be on the list; `/` is an old way to write `OR`.
fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace('/', " OR ").replace(['(', ')'], "");
    let any = |part: &str| part.split(" OR ").any(|one| LICENCES.contains(&one.trim()));
    licence.split(" AND ").all(any) || licence.split(" OR ").any(|one| LICENCES.contains(&one.trim()))
}

#[test]
fn every_dependency_has_a_licence_that_we_accept() {
    let metadata = metadata();
    let refused: Vec<_> = packages(&metadata)
        .iter()
        .filter(|package| !is_allowed(text(package, "license")))
        .map(|package| format!("{}: {}", text(package, "name"), text(package, "license")))
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn every_dependency_comes_from_the_registry() {
    let metadata = metadata();
    let elsewhere: Vec<_> = packages(&metadata)
        .iter()
        .filter(|package| !package["source"].is_null() && !text(package, "source").starts_with("registry+"))
        .map(|package| text(package, "id"))
        .collect();
    assert_eq!(elsewhere, Vec::<&str>::new());
}

#[test]
fn crates_depend_on_core_only() {
    let metadata = metadata();
    for package in packages(&metadata)
        .iter()
        .filter(|package| text(package, "name").starts_with("rockbot-"))
    {
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        let ours: BTreeSet<_> = dependencies
            .map(|dependency| text(dependency, "name"))
            .filter(|name| name.starts_with("rockbot"))
            .collect();
        let allowed: BTreeSet<_> = match text(package, "name") {
            "rockbot-core" => [].into(),
            "rockbot-benches" => ["rockbot-core", "rockbot-host", "rockbot-llm", "rockbot-memory"].into(),
            _ => ["rockbot-core"].into(),
        };
        assert!(
            ours.is_subset(&allowed),
            "{} depends on {ours:?}",
            text(package, "name")
        );
    }
}

#[test]
fn core_knows_no_network_and_no_runtime() {
    let manifest = std::fs::read_to_string(root().join("rockbot-core/Cargo.toml")).expect("the manifest");
    for forbidden in ["reqwest", "hyper", "scraper", "lapin", "rmcp", "\"rt\"", "\"net\""] {
        let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        assert!(!normal.contains(forbidden), "rockbot-core uses {forbidden}");
    }
}

#[test]
fn every_direct_dependency_is_explained() {
    let explained = std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let metadata = metadata();
    for package in packages(&metadata)
        .iter()
        .filter(|package| text(package, "name").starts_with("rockbot"))
    {
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = text(dependency, "name");
            assert!(
                name.starts_with("rockbot") || explained.contains(name),
                "{name} is not explained in CONTRIBUTING.md"
            );
        }
    }
}

#[test]
fn every_example_is_listed() {
    let listed = std::fs::read_to_string(root().join("examples/README.md")).expect("examples/README.md");
    for entry in std::fs::read_dir(root().join("examples")).expect("examples") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let name = name.trim_end_matches(".rs");
        assert!(
            name == "README.md" || listed.contains(&format!("`{name}`")),
            "{name} is not in examples/README.md"
        );
    }
}

#[test]
fn the_readme_has_exactly_two_commands() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let commands: Vec<_> = readme
        .split("```sh\n")
        .skip(1)
        .filter_map(|block| block.lines().next())
        .collect();
    assert_eq!(commands, ["cargo run --example chat", "cargo test --all-features"]);
}
