//! `SKILL.md`: one skill in the open format.

use std::collections::BTreeMap;
use std::fmt::Write;

use rockbot_core::Digest;
use rockbot_core::context::Trust;
use rockbot_core::store::{Skill, StorePath};

use super::front_matter::{self, Fields, Value, quoted, shown};
use super::managed_skill::{FOLDER_SOURCE, ManagedSkill};

/// Maximum length of the name, the description and the compatibility note, in characters.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;
const MAX_COMPATIBILITY: usize = 500;

/// The fields beside name and description that are stored with a skill, in the order of the
/// document.
const FIELDS: [&str; 3] = ["license", "compatibility", "allowed-tools"];

/// Prefix of the author's notes: `metadata.author`.
const NOTE: &str = "metadata.";

/// Notes of this crate: the skill's name in the store, and a digest of everything else, which
/// detects external edits.
const OUR_NAME: &str = "metadata.rockbot-name";
const OUR_DIGEST: &str = "metadata.rockbot-digest";

/// The error for an invalid `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFileError {
    /// The file has no front matter.
    #[error("it does not begin with a front matter: fields in YAML between two lines `---`")]
    NoFrontMatter,
    /// The front matter cannot be parsed.
    #[error("its front matter cannot be read: {0}; put texts with special characters in quotes")]
    Yaml(String),
    /// A field is missing, or is not a text.
    #[error("its front matter has no text `{0}`")]
    Missing(&'static str),
    /// The name violates the format.
    #[error(
        "`{0}` cannot name a skill: use 1 to 64 lower-case letters a-z and digits, with single hyphens between them"
    )]
    Name(String),
    /// A field is too long.
    #[error("its `{field}` has more than {most} characters: shorten it")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Maximum number of characters.
        most: usize,
    },
}

/// A parsed `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkillFile {
    pub(super) name: String,
    pub(super) description: String,
    /// The other fields by name; members of `metadata` as `metadata.author`.
    pub(super) fields: BTreeMap<String, String>,
    pub(super) body: String,
}

impl SkillFile {
    pub(super) fn parse(text: &str) -> Result<Self, SkillFileError> {
        let (yaml, body) = front_matter::split(text).ok_or(SkillFileError::NoFrontMatter)?;
        let mut read = front_matter::read(yaml).map_err(SkillFileError::Yaml)?;
        let name = taken(&mut read, "name").ok_or(SkillFileError::Missing("name"))?;
        if !is_name(&name) {
            return Err(SkillFileError::Name(shown(&name)));
        }
        let description = taken(&mut read, "description").ok_or(SkillFileError::Missing("description"))?;
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        at_most("description", &description, MAX_DESCRIPTION)?;
        let fields = fields(&mut read);
        let compatibility = fields.get("compatibility").map_or("", String::as_str);
        at_most("compatibility", compatibility, MAX_COMPATIBILITY)?;
        Ok(Self {
            name,
            description,
            fields,
            body: body.replace("\r\n", "\n").trim().to_owned(),
        })
    }

    /// Converts a skill into a file that other programs can read, with a name that the format allows.
    pub(super) fn of(skill: &Skill) -> Self {
        let purpose = match skill.summary.trim() {
            "" => skill.content.lines().map(heading).find(|line| !line.is_empty()),
            summary => Some(summary),
        };
        let description: Vec<_> = purpose.unwrap_or(skill.name.as_str()).split_whitespace().collect();
        let mut file = Self {
            name: name_of(&skill.name),
            description: description.join(" ").chars().take(MAX_DESCRIPTION).collect(),
            fields: written(&skill.metadata),
            body: skill.content.trim().to_owned(),
        };
        if file.name != skill.name.as_str() {
            file.fields.insert(OUR_NAME.to_owned(), skill.name.to_string());
        }
        // The digest covers the text as a reader parses it: line ends and white space may differ from
        // the store's.
        let digest = Self::parse(&file.to_text()).as_ref().unwrap_or(&file).digest();
        file.fields.insert(OUR_DIGEST.to_owned(), digest);
        file
    }

    /// Returns `true` if this crate wrote the file, and it has not been edited since.
    pub(super) fn is_ours(&self) -> bool {
        self.fields.get(OUR_DIGEST) == Some(&self.digest())
    }

    fn digest(&self) -> String {
        let fields = self.fields.iter().filter(|(name, _)| *name != OUR_DIGEST);
        let fields = fields.flat_map(|(name, value)| [name.as_str(), value]);
        Digest::of([&*self.name, &self.description, &self.body].into_iter().chain(fields)).short()
    }

    /// Converts the file into a managed skill.
    pub(super) fn into_managed(mut self, trust: Trust) -> Option<ManagedSkill> {
        self.fields.remove(OUR_DIGEST);
        let ours = self.fields.remove(OUR_NAME).and_then(|name| StorePath::new(&name).ok());
        Some(ManagedSkill {
            name: ours.or_else(|| StorePath::new(&self.name).ok())?,
            summary: self.description,
            content: self.body,
            metadata: self.fields,
            source: FOLDER_SOURCE,
            trust,
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!("---\nname: {}\ndescription: {}\n", self.name, quoted(&self.description));
        let mut line = |indent: &str, name: &str, value: &str| {
            writeln!(text, "{indent}{name}: {}", quoted(value)).expect("a text takes in everything");
        };
        for name in FIELDS {
            self.fields
                .get(name)
                .into_iter()
                .for_each(|value| line("", name, value));
        }
        let mut notes = self
            .fields
            .iter()
            .filter(|(name, _)| !FIELDS.contains(&name.as_str()))
            .peekable();
        if notes.peek().is_some() {
            text.push_str("metadata:\n");
        }
        for (name, value) in notes {
            let name = quoted(name.strip_prefix(NOTE).unwrap_or(name));
            writeln!(text, "  {name}: {}", quoted(value)).expect("a text takes in everything");
        }
        format!("{text}---\n\n{}\n", self.body)
    }
}

/// Removes a field and returns its text, unless it is empty.
fn taken(fields: &mut Fields, name: &str) -> Option<String> {
    match fields.remove(name)? {
        Value::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::List(_) | Value::Map(_) => None,
    }
}

/// Returns the fields to store. Unknown fields, and notes that are no text, are left out.
fn fields(read: &mut Fields) -> BTreeMap<String, String> {
    // Some programs write the tools as a list.
    if let Some(Value::List(list)) = read.get("allowed-tools") {
        let texts = list.iter().filter_map(text).collect::<Vec<_>>().join(" ");
        read.insert("allowed-tools".to_owned(), Value::Text(texts));
    }
    let known = FIELDS
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), taken(read, name)?)));
    let mut fields: BTreeMap<_, _> = known.collect();
    if let Some(Value::Map(notes)) = read.get("metadata") {
        let note = |(name, value): (&String, &Value)| Some((format!("{NOTE}{name}"), text(value)?.to_owned()));
        fields.extend(notes.iter().filter_map(note));
    }
    fields
}

/// Returns the metadata of a skill as fields of the format that can be parsed again.
fn written(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let field = |(name, value): (&String, &String)| match name.as_str() {
        "compatibility" => (name.clone(), value.trim().chars().take(MAX_COMPATIBILITY).collect()),
        name if FIELDS.contains(&name) || name.starts_with(NOTE) => (name.to_owned(), value.clone()),
        name => (format!("{NOTE}{name}"), value.clone()),
    };
    let mut fields: BTreeMap<_, _> = metadata.iter().map(field).collect();
    fields.retain(|name, _| name != OUR_NAME && name != OUR_DIGEST);
    fields
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        Value::List(_) | Value::Map(_) => None,
    }
}

fn at_most(field: &'static str, text: &str, most: usize) -> Result<(), SkillFileError> {
    match text.chars().nth(most) {
        Some(_) => Err(SkillFileError::TooLong { field, most }),
        None => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= MAX_NAME && name.split('-').all(is_word)
}

/// Converts the name of a skill into a name that the format allows: `mcp/E-Mail` becomes
/// `mcp-e-mail`.
fn name_of(name: &StorePath) -> String {
    let name = name.as_str().to_lowercase();
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    let name = name[..name.len().min(MAX_NAME)].trim_end_matches('-');
    if name.is_empty() {
        "skill".to_owned()
    } else {
        name.to_owned()
    }
}

/// Strips the heading mark from a line of Markdown.
fn heading(line: &str) -> &str {
    line.trim().trim_start_matches('#').trim()
}
