//! Rules for what the listings of the public API show: options have setters, and errors say
//! whether a retry helps.

use super::source::{LIBRARIES, root};

/// Types, or single fields, without a setter of the field's name, each with the reason.
const WITHOUT_SETTERS: [(&str, &str); 19] = [
    (
        "AgentHostSettings",
        "read from a configuration; a program calls the builder",
    ),
    ("AgentSpec.is_program", "`program` sets it"),
    ("AgentSpec.own_tools", "`tool` adds one"),
    ("DelegatedWork", "made from the outcome of a turn"),
    ("ExportReport", "made by an export"),
    ("ImportReport", "made by an import"),
    ("Resumed", "made by a start"),
    ("TextAnswer", "made by the parser"),
    ("HistoryOptions.keep_calls", "`with_kept_calls`"),
    ("HistoryOptions.show_calls", "`with_shown_calls`"),
    ("ModelInfo.is_busy", "`with_busy`"),
    ("ModelInfo.takes_images", "`with_images`"),
    ("ModelSettings.extra_headers", "`with_extra_header` adds one"),
    ("PulsarSettings", "read from a configuration or a URL"),
    ("RabbitMqSettings", "read from a configuration or a URL"),
    ("Stores.skill_usage", "`with_skills` sets both"),
    ("ToolHints.runs_turn", "for agents as tools"),
    ("TurnSoFar.failed_calls", "`with_call` counts"),
    ("TurnSoFar.mutating_calls", "`with_call` counts"),
];

/// An item of a listing: its first line, and the lines about it.
struct Listed {
    head: String,
    lines: Vec<String>,
}

fn listed() -> Vec<Listed> {
    let mut items: Vec<Listed> = Vec::new();
    for name in LIBRARIES {
        let file = root().join(format!("tests/it/tidy/public_api/{name}.txt"));
        let text = std::fs::read_to_string(file).expect("a listing");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match (line.strip_prefix("  "), items.last_mut()) {
                (Some(about), Some(item)) => item.lines.push(about.to_owned()),
                _ => items.push(Listed {
                    head: line.to_owned(),
                    lines: Vec::new(),
                }),
            }
        }
    }
    assert!(items.len() > 300, "the listings were read");
    items
}

impl Listed {
    /// Returns the path, without generics.
    fn path(&self) -> &str {
        let path = self.head.split(' ').nth(1).unwrap_or_default();
        path.split('<').next().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.path().rsplit("::").next().unwrap_or_default()
    }

    fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// Returns the names of the public fields.
    fn fields(&self) -> impl Iterator<Item = &str> {
        let names = self.lines.iter().filter_map(|line| line.split_once(": "));
        names
            .map(|(name, _)| name)
            .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    }

    /// Returns `true` for a struct of options: it has defaults, and its fields are public.
    fn is_options(&self) -> bool {
        let has_default = self.has(&format!("impl Default for {}", self.name()));
        let derives = self
            .lines
            .iter()
            .any(|line| line.starts_with("#[derive(") && line.contains("Default"));
        self.head.starts_with("struct ") && self.has("#[non_exhaustive]") && (has_default || derives)
    }

    fn is_error(&self) -> bool {
        let derives = self
            .lines
            .iter()
            .any(|line| line.starts_with("#[derive(") && line.contains("Error)"));
        derives || self.has(&format!("Error for {}", self.name()))
    }
}

#[test]
fn options_have_a_setter_for_each_field() {
    let items = listed();
    let mut missing = Vec::new();
    let mut checked = 0;
    for item in items.iter().filter(|item| item.is_options()) {
        let lacking: Vec<_> = item
            .fields()
            .filter(|field| !item.lines.iter().any(|line| sets(line, field)))
            .filter(|field| !is_excepted(item.name(), field))
            .collect();
        checked += 1;
        if !lacking.is_empty() {
            missing.push(format!("{}: {}", item.path(), lacking.join(", ")));
        }
    }
    assert!(checked > 20, "options were found");
    assert!(
        missing.is_empty(),
        "these fields need a `with_…`:\n{}",
        missing.join("\n")
    );
}

fn is_excepted(name: &str, field: &str) -> bool {
    let field = format!("{name}.{field}");
    WITHOUT_SETTERS.iter().any(|(left, _)| *left == name || *left == field)
}

/// Reports whether a line lists a method that sets a field: one of its name, or `new` with an
/// argument of it.
fn sets(line: &str, field: &str) -> bool {
    let begins = |name: &str| line.contains(&format!("fn {name}(")) || line.contains(&format!("fn {name}<"));
    let is_new = begins("new") && line.contains(&format!("{field}: "));
    is_new || (begins(&format!("with_{field}")) || begins(field)) && line.contains("self")
}

/// Errors against which a repetition never helps, each with the reason.
const NEVER: [(&str, &str); 36] = [
    ("AgentFileError", "the file is wrong"),
    ("ArgumentError", "the call is wrong"),
    ("BuildError", "the program is wrong"),
    ("ConfigError", "the configuration is wrong"),
    ("ContentError", "the message is too large"),
    ("DataDirError", "the folder is up to a person"),
    ("DescriptorProblem", "the descriptor is wrong"),
    ("GivenHistoryError", "the messages are wrong"),
    ("GuideError", "the guide is wrong"),
    ("HistoryError", "the messages are wrong"),
    ("IdTooLong", "the id is wrong"),
    ("InvalidAmount", "the amount is wrong"),
    ("LlmConfigError", "the configuration is wrong"),
    ("McpAcceptError", "a person must look first"),
    ("McpConfigError", "the file is wrong"),
    ("MissingPart", "the program is wrong"),
    ("ModelSettingsError", "the settings are wrong"),
    ("NotStrict", "the schema has no such form"),
    ("NotAnEmbedding", "the vector is wrong"),
    ("OpenApiError", "the document is wrong"),
    ("PackageError", "the name is wrong"),
    ("PathError", "the path is wrong"),
    ("PayloadError", "the message is wrong"),
    ("PdfError", "the document is wrong"),
    ("PriceTableError", "the file is wrong"),
    ("ProfileError", "the files are up to a person"),
    ("QueueIdError", "the id is wrong"),
    ("RegistryError", "the name is taken"),
    ("SchemaError", "the schema is wrong"),
    ("SkillFileError", "the file is wrong"),
    ("SkipReason", "the folder is wrong"),
    ("SqliteError", "the database is up to a person"),
    ("TierRulesError", "the file is wrong"),
    ("TopicError", "the topic is wrong"),
    ("UnknownServer", "the name is wrong"),
    ("UnknownVersion", "another version wrote it"),
];

#[test]
fn errors_say_whether_a_retry_helps() {
    let items = listed();
    let errors: Vec<_> = items.iter().filter(|item| item.is_error()).collect();
    assert!(errors.len() > 30, "errors were found");
    let is_excepted = |item: &Listed| NEVER.iter().any(|(name, _)| *name == item.name());
    let silent = errors
        .iter()
        .filter(|item| !item.has("fn retry_helps(") && !is_excepted(item));
    let silent: Vec<_> = silent.map(|item| item.path()).collect();
    assert_eq!(
        silent,
        Vec::<&str>::new(),
        "these errors need `retry_helps`, or an entry in `NEVER`"
    );
    let stale = NEVER
        .iter()
        .filter(|(name, _)| !errors.iter().any(|item| item.name() == *name));
    assert_eq!(stale.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
}
