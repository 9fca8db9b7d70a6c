//! Rules for the repository itself: licences, sources, dependencies between crates, language,
//! complete lists.

mod api;
mod circles;
mod error_texts;
mod foreign;
mod full_agent;
mod listed;
mod prose;
mod requests;
mod source;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use source::{root, rust_files};

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

/// Returns cargo's metadata for this platform: other platforms' packages need not be on this
/// machine.
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

/// Packages under the MPL below `scraper`, which only a test uses: nothing that is shipped
/// contains them.
const OF_TESTS: [&str; 4] = ["cssparser", "cssparser-macros", "dtoa-short", "selectors"];

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
        .filter(|package| !is_allowed(text(package, "license")) && !OF_TESTS.contains(&text(package, "name")))
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

/// The crates of the workspace that each crate may depend on. Everything points downwards:
/// authors of tools, models, stores and buses need `rockbot-core` alone.
const MAY_DEPEND_ON: [(&str, &[&str]); 22] = [
    ("rockbot-bus", &["rockbot-core"]),
    (
        "rockbot-core",
        &["rockbot-json", "rockbot-provenance", "rockbot-schema", "rockbot-search"],
    ),
    ("rockbot-eval", &["rockbot-core", "rockbot-host", "rockbot-schema"]),
    ("rockbot-json", &[]),
    // For its tests alone.
    ("rockbot-pages", &["rockbot-core"]),
    ("rockbot-provenance", &[]),
    ("rockbot-schema", &[]),
    ("rockbot-search", &[]),
    ("rockbot-text-calls", &[]),
    (
        "rockbot-host",
        &[
            "rockbot-core",
            "rockbot-provenance",
            "rockbot-store",
            "rockbot-text-calls",
        ],
    ),
    ("rockbot-llm", &["rockbot-core"]),
    ("rockbot-mcp", &["rockbot-core", "rockbot-tools"]),
    ("rockbot-memory", &["rockbot-core", "rockbot-store"]),
    // Its tests run hosts.
    ("rockbot-remote", &["rockbot-core", "rockbot-host"]),
    ("rockbot-store", &["rockbot-core"]),
    ("rockbot-tools", &["rockbot-core", "rockbot-pages"]),
    ("rockbot-web", &["rockbot-core", "rockbot-memory", "rockbot-tools"]),
    (
        "rockbot-openrouter-mcp",
        &["rockbot-core", "rockbot-host", "rockbot-mcp", "rockbot-tools"],
    ),
    ("rockbot-cli", &["rockbot"]),
    (
        "rockbot-scripts-manager",
        &["rockbot-bus", "rockbot-core", "rockbot-host", "rockbot-tools"],
    ),
    (
        "rockbot",
        &[
            "rockbot-bus",
            // For the example `chat` alone.
            "rockbot-cli",
            "rockbot-core",
            "rockbot-eval",
            "rockbot-host",
            "rockbot-llm",
            "rockbot-mcp",
            "rockbot-memory",
            "rockbot-remote",
            "rockbot-scripts-manager",
            "rockbot-store",
            "rockbot-tools",
            "rockbot-web",
        ],
    ),
    (
        "rockbot-benches",
        &[
            "rockbot-bus",
            "rockbot-core",
            "rockbot-host",
            "rockbot-llm",
            "rockbot-mcp",
            "rockbot-memory",
            "rockbot-provenance",
            "rockbot-store",
            "rockbot-tools",
        ],
    ),
];

#[test]
fn crates_depend_only_on_the_crates_below_them() {
    let metadata = metadata();
    let ours = packages(&metadata)
        .iter()
        .filter(|package| text(package, "name").starts_with("rockbot"));
    for package in ours {
        let name = text(package, "name");
        let allowed = MAY_DEPEND_ON.iter().find(|(listed, _)| *listed == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{name} is not listed in MAY_DEPEND_ON"));
        let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
        for dependency in dependencies.map(|dependency| text(dependency, "name")) {
            let is_allowed = !dependency.starts_with("rockbot") || allowed.contains(&dependency);
            assert!(is_allowed || dependency == name, "{name} depends on {dependency}");
        }
    }
}

/// Returns `true` if a build of these features of the facade compiles C, which no crate does
/// without `cc`.
fn compiles_c(features: &str) -> bool {
    let what = [
        "tree",
        "--offline",
        "-p",
        "rockbot",
        "-e",
        "normal,build",
        "--prefix",
        "none",
    ];
    let features = ["--no-default-features", "--features", features];
    let tree = output(env!("CARGO"), &[&what[..], &features].concat());
    tree.lines().any(|line| line.starts_with("cc v"))
}

#[test]
fn a_build_without_tls_and_sqlite_needs_no_c_compiler() {
    assert!(!compiles_c("llm,memory,testing"));
    for features in ["llm,tls", "sqlite", "postgres", "rabbitmq", "pulsar"] {
        assert!(
            compiles_c(features),
            "the README says that {features} needs a C compiler"
        );
    }
}

/// A lower `rust-version` than a dependency's cannot build. The standard library's part is
/// checked by clippy's `incompatible_msrv`, which knows when each item became stable.
#[test]
fn no_dependency_needs_a_newer_rust_than_we_state() {
    let metadata = metadata();
    let needed = |package: &Value| version(text(package, "rust_version"));
    let stated = packages(&metadata)
        .iter()
        .find(|package| text(package, "name") == "rockbot");
    let stated = needed(stated.expect("the facade"));
    assert!(stated > (1, 0), "the facade states its rust-version");
    let newer: Vec<_> = packages(&metadata)
        .iter()
        .filter(|package| needed(package) > stated)
        .map(|package| format!("{} needs Rust {}", text(package, "name"), text(package, "rust_version")))
        .collect();
    assert_eq!(newer, Vec::<String>::new());
}

/// Returns the major and minor number of a version; an absent one is the oldest.
fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or_default());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
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
fn documents_stay_short() {
    for (document, most) in [
        ("README.md", 1_000),
        ("ARCHITECTURE.md", 3_000),
        ("BENCHMARKS.md", 1_000),
    ] {
        let text = std::fs::read_to_string(root().join(document)).expect(document);
        let words = text.split_whitespace().count();
        assert!(
            words <= most,
            "{document} has {words} words; details belong to a page of docs/ or a module header"
        );
    }
}

#[test]
fn documents_name_tests_that_exist() {
    for document in ["COMPARE.md", "docs/http.md"] {
        let text = std::fs::read_to_string(root().join(document)).expect(document);
        let named: Vec<_> = text.split('`').filter(|word| word.starts_with("tests/")).collect();
        assert!(named.len() > 5, "{named:?}");
        for path in named {
            assert!(root().join(path).exists(), "{path}");
        }
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
    assert_eq!(
        commands,
        ["cargo run --example chat", "cargo test --workspace --all-features"]
    );
}

/// Maximum number of lines of code of `rockbot-core` without its features, without comments,
/// blank lines and tests. It is the crate that every author depends on: what grows belongs into a
/// crate beside it.
const MAX_CORE_LINES: usize = 14_600;

#[test]
fn core_stays_small() {
    let source = root().join("rockbot-core/src");
    let behind_features = ["config", "files", "process", "testing"].map(|feature| source.join(feature));
    let files = rust_files(&source).into_iter().filter(|file| {
        let is_test = file.file_name().is_some_and(|name| name == "tests.rs");
        !is_test && !behind_features.iter().any(|folder| file.starts_with(folder))
    });
    let lines: usize = files.map(|file| lines_of_code(&file)).sum();
    assert!(lines > 10_000, "the sources of rockbot-core were found");
    assert!(lines <= MAX_CORE_LINES, "rockbot-core has {lines} lines of code");
}

/// Returns the number of lines of code of a file up to its tests, which are last.
fn lines_of_code(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).expect("a source file");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}
