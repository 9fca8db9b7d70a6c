//! The examination of a call: the origin of each value that decides about it.

use serde_json::Value;

use crate::evidence::{Evidence, Known, Source};
use crate::origin::{OriginKind, ValueOrigin};
use crate::role::{ArgumentRole, Kind, is_receiver, kind_of, words_of};
use crate::{action, addresses, dates, numbers, records, words};

/// Maximum number of values that are examined in one call. A call with more is asked about.
const MAX_VALUES: usize = 64;

/// Minimum number of words of a sentence.
const MIN_PROSE: usize = 4;

/// Words of argument names whose value is run.
const EXECUTABLE: [&str; 9] = [
    "command",
    "cmd",
    "code",
    "script",
    "query",
    "sql",
    "expression",
    "shell",
    "exec",
];

/// Minimum length of a choice that an outside text can say on purpose, in bytes.
const MIN_CHOICE: usize = 4;

/// Minimum length of a text that counts as quoted, in bytes.
const MIN_QUOTE: usize = 16;

/// Maximum depth of the arguments that are examined.
const MAX_DEPTH: u32 = 16;

/// A call that a model wants to make.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    tool: &'a str,
    arguments: &'a Value,
    schema: &'a Value,
    roles: &'a [(String, ArgumentRole)],
    made: &'a [&'a Value],
    endorsed: &'a [(&'a str, &'a str)],
    only_sends: bool,
}

impl<'a> Call<'a> {
    /// Creates a call of `tool` with `arguments`, an object that fits the JSON `schema`.
    pub fn new(tool: &'a str, arguments: &'a Value, schema: &'a Value) -> Self {
        Self {
            tool,
            arguments,
            schema,
            roles: &[],
            made: &[],
            endorsed: &[],
            only_sends: false,
        }
    }

    /// Sets the roles that the program declared for arguments. They take precedence over schema and
    /// name. Default: none.
    #[must_use]
    pub fn with_roles(mut self, roles: &'a [(String, ArgumentRole)]) -> Self {
        self.roles = roles;
        self
    }

    /// Sets the arguments of the calls of this tool that succeeded in the same turn. Default: none.
    #[must_use]
    pub fn with_made(mut self, made: &'a [&'a Value]) -> Self {
        self.made = made;
        self
    }

    /// Sets the arguments and values that the user has endorsed for the tool. A value counts for
    /// every item of an argument; an argument without a name endorses the call as such. Default: none.
    #[must_use]
    pub fn with_endorsed(mut self, endorsed: &'a [(&'a str, &'a str)]) -> Self {
        self.endorsed = endorsed;
        self
    }

    /// Sets whether the call changes nothing, so that only its addresses matter: what the model
    /// composed must not leave in one. An address that stands in one text as a whole says nothing
    /// new to its receiver. Default `false`.
    #[must_use]
    pub fn with_only_sends(mut self, only_sends: bool) -> Self {
        self.only_sends = only_sends;
        self
    }
}

/// The origins of the values that decide about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examination {
    /// The values with their origins, the doubtful values first.
    pub origins: Vec<ValueOrigin>,
}

impl Examination {
    /// Returns `true` if the user's words endorse the call, so that no person must be asked.
    pub fn is_endorsed(&self) -> bool {
        !self.origins.iter().any(ValueOrigin::is_doubtful)
    }
}

/// Finds where the deciding values of a call come from.
pub fn examine(call: &Call<'_>, evidence: &Evidence<'_>) -> Examination {
    let mut finder = Finder {
        call,
        evidence,
        names: words_of(call.tool),
        origins: Vec::new(),
        is_anchored: false,
        examined: 0,
    };
    finder.object("", call.arguments, Some(call.schema), None, MAX_DEPTH);
    if !call.only_sends {
        finder.judge_action();
    }
    let mut origins = finder.origins;
    origins.sort_by_key(|origin| !origin.is_doubtful());
    Examination { origins }
}

struct Finder<'a> {
    call: &'a Call<'a>,
    evidence: &'a Evidence<'a>,
    /// The words of the tool's name.
    names: Vec<String>,
    origins: Vec<ValueOrigin>,
    /// `true` once a value is the user's own, so that the call does something that the user spoke
    /// of.
    is_anchored: bool,
    examined: usize,
}

impl<'a> Finder<'a> {
    /// Adds a doubt about the whole call if the user's words do not ask for it.
    fn judge_action(&mut self) {
        let tool = self.call.tool;
        if self.is_endorsed("", tool) {
            return;
        }
        let is_asked_for = if self.is_anchored {
            action::is_asked_for(tool, self.evidence)
        } else {
            action::is_named(tool, self.evidence)
        };
        if !is_asked_for {
            self.origins.push(ValueOrigin::new("", tool, OriginKind::Unasked));
        } else if self.call.made.iter().any(|made| self.is_equal(made)) {
            self.origins.push(ValueOrigin::new("", tool, OriginKind::Repeated));
        }
    }

    /// Reports whether an earlier call had the same deciding values.
    fn is_equal(&self, made: &Value) -> bool {
        let (Value::Object(made), Value::Object(wanted)) = (made, self.call.arguments) else {
            return made == self.call.arguments;
        };
        let decides = |name: &String| self.kind(name, property(Some(self.call.schema), name), None) != Kind::Content;
        let same = |name: &String| !decides(name) || made.get(name) == wanted.get(name);
        wanted.keys().chain(made.keys()).all(same)
    }

    fn kind(&self, name: &str, schema: Option<&Value>, above: Option<Kind>) -> Kind {
        let declared = self.call.roles.iter().find(|(argument, _)| argument == name);
        match (kind_of(name, schema, declared.map(|(_, role)| *role)), above) {
            (Kind::Deciding, Some(above)) => above,
            (kind, _) => kind,
        }
    }

    fn object(&mut self, path: &str, value: &Value, schema: Option<&Value>, above: Option<Kind>, depth: u32) {
        let Value::Object(members) = value else {
            return;
        };
        for (name, member) in members {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let schema = property(schema, name);
            let kind = self.kind(name, schema, above);
            self.value(&path, name, member, schema, kind, depth);
        }
    }

    fn value(&mut self, path: &str, name: &str, value: &Value, schema: Option<&Value>, kind: Kind, depth: u32) {
        if self.examined >= MAX_VALUES || depth == 0 {
            self.doubt_rest(path);
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.get("items"));
                for (index, item) in items.iter().enumerate() {
                    self.value(&format!("{path}[{index}]"), name, item, schema, kind, depth - 1);
                }
            }
            Value::Object(_) => {
                let above = (kind != Kind::Deciding).then_some(kind);
                self.object(path, value, schema, above, depth - 1);
            }
            Value::Number(_) | Value::String(_) if is_default(value, schema) => {}
            Value::Number(number) => self.leaf(path, name, &number.to_string(), kind, true),
            Value::String(text) => self.leaf(path, name, text, kind, false),
        }
    }

    /// Adds one doubt for all values beyond the maximum.
    fn doubt_rest(&mut self, path: &str) {
        let has_rest = self
            .origins
            .last()
            .is_some_and(|origin| origin.value == "too many values");
        if !has_rest {
            self.origins
                .push(ValueOrigin::new(path, "too many values", OriginKind::Composed));
        }
    }

    fn leaf(&mut self, path: &str, name: &str, value: &str, kind: Kind, is_number: bool) {
        if value.trim().is_empty() {
            return;
        }
        self.examined += 1;
        if self.call.only_sends {
            if kind == Kind::Address {
                self.sent_address(path, value);
            }
            return;
        }
        match kind {
            Kind::Choice => self.choice(path, name, value),
            Kind::Content => self.content(path, name, value),
            Kind::Deciding if is_prose(value) && !is_executable(name) => self.content(path, name, value),
            _ => self.deciding(path, name, value, kind, is_number),
        }
    }

    /// Examines the address of a call that changes nothing: it must stand in one text as a whole.
    fn sent_address(&mut self, path: &str, value: &str) {
        let is_known = |text: &str| text.contains(value) || addresses::has_web(value, text);
        let host = addresses::host(value);
        let is_read = || {
            self.evidence
                .outside
                .iter()
                .any(|source| source.may_have(host) && is_known(&source.text))
        };
        let mut known = self.evidence.user.iter().chain(&self.evidence.host);
        let is_known = known.any(|known| is_known(&known.raw)) || is_read();
        if !is_known && !self.is_endorsed(path, value) {
            self.origins.push(ValueOrigin::new(path, value, OriginKind::Composed));
        }
    }

    /// Examines a value out of a fixed list. The model may choose it, unless an outside text alone
    /// says it.
    fn choice(&mut self, path: &str, name: &str, value: &str) {
        let is_users = self.is_users(value, name, Kind::Choice) || self.is_said(value);
        self.is_anchored |= is_users;
        let mut written = vec![value.to_owned(), value.to_uppercase(), value.replace(['_', '-'], " ")];
        written.extend(
            value
                .chars()
                .next()
                .map(|first| format!("{}{}", first.to_uppercase(), &value[first.len_utf8()..])),
        );
        let is_word = |source: &&Source<'_>| {
            let mut written = written.iter();
            written.any(|value| source.may_have(value) && words::has_word(value, &source.text))
        };
        if !is_users
            && value.len() >= MIN_CHOICE
            && let Some(source) = self.evidence.outside.iter().find(is_word)
        {
            let origin = ValueOrigin::new(path, value, OriginKind::Outside).from(&source.name);
            self.origins.push(origin);
        }
    }

    /// Reports whether a message of the user has each word of the value in some form.
    fn is_said(&self, value: &str) -> bool {
        let value = value.to_lowercase();
        let mut parts = value.split(['_', '-', '.', ' ']).filter(|part| !part.is_empty());
        let is_said = |part: &str| {
            part.len() > 2
                && self
                    .evidence
                    .user
                    .iter()
                    .any(|known| action::has_form(part, &known.folded))
        };
        parts.all(is_said)
    }

    /// Examines composed text: the links in it, which its reader may follow, must be known.
    fn content(&mut self, path: &str, name: &str, value: &str) {
        if self.is_users(value, name, Kind::Content) {
            self.is_anchored = true;
        } else if value.len() >= MIN_QUOTE {
            // Words of others, sent as they are, and not in the model's words.
            let quoted = self.foreign(path, value.trim());
            if quoted.kind == OriginKind::Outside && !self.is_endorsed(path, value) {
                self.origins.push(quoted);
            }
        }
        for link in addresses::links(value) {
            let is_known = |known: &Known<'_>| addresses::has_web(link, &known.raw);
            let is_trusted = self.evidence.user.iter().chain(&self.evidence.host).any(is_known);
            if !is_trusted && !self.is_endorsed(path, link) {
                let origin = self.foreign(path, link);
                self.origins.push(origin);
            }
        }
    }

    fn deciding(&mut self, path: &str, name: &str, value: &str, kind: Kind, is_number: bool) {
        if let Some(date) = dates::of_value(value).filter(|_| !is_number) {
            self.date(path, value, date);
            return;
        }
        let is_users = self.is_endorsed(path, value)
            || self.is_users(value, name, kind)
            || (is_slug(value) && self.is_said(value))
            || self.is_named_record(value, name, kind);
        let origin = if is_users {
            self.is_anchored = true;
            ValueOrigin::new(path, value, OriginKind::User)
        } else if let Some(known) = self.in_host(value, name, kind) {
            self.is_anchored |= self.is_spoken_of(value, known);
            ValueOrigin::new(path, value, OriginKind::Host)
        } else {
            self.foreign(path, value)
        };
        self.origins.push(origin);
    }

    /// Examines a date or a time. The day must not come from outside text alone; a time of day
    /// that the model computed, such as the end of an hour, decides about nothing.
    fn date(&mut self, path: &str, value: &str, date: Option<dates::Date>) {
        let Some(date) = date else { return };
        let mut said = self.evidence.user.iter().flat_map(Known::dates);
        let origin = if said.any(|said| said.may_be(date)) {
            self.is_anchored = true;
            ValueOrigin::new(path, value, OriginKind::User)
        } else {
            let foreign = self.foreign(path, value.get(..10).unwrap_or(value));
            if foreign.kind != OriginKind::Outside {
                return;
            }
            foreign
        };
        self.origins.push(origin);
    }

    /// Reports whether the user has endorsed the value for the tool.
    fn is_endorsed(&self, path: &str, value: &str) -> bool {
        let argument = |path: &str| path.split('[').next().unwrap_or_default().to_owned();
        let mut endorsed = self.call.endorsed.iter();
        endorsed.any(|(named, known)| argument(named) == argument(path) && *known == value)
    }

    /// Reports whether a message of the user names the value.
    fn is_users(&self, value: &str, name: &str, kind: Kind) -> bool {
        self.evidence
            .user
            .iter()
            .any(|known| self.stands_in(value, name, kind, known))
    }

    fn in_host(&self, value: &str, name: &str, kind: Kind) -> Option<&'a Known<'a>> {
        self.evidence
            .host
            .iter()
            .find(|known| self.stands_in(value, name, kind, known))
    }

    fn stands_in(&self, value: &str, name: &str, kind: Kind, known: &Known<'_>) -> bool {
        let value = value.trim();
        if addresses::is_mail(value) {
            return addresses::has_mail(value, &known.folded);
        }
        if addresses::is_web(value) || kind == Kind::Address && !value.contains(char::is_whitespace) {
            let is_word = || !value.contains("://") && words::find(value, known, &self.names).is_some();
            return addresses::has_web(value, &known.raw) || is_word();
        }
        let mut names = self.names.clone();
        names.extend(words_of(name));
        if let Some(amount) = numbers::parse(value).filter(|_| kind == Kind::Deciding) {
            return numbers::names(amount, known);
        }
        words::find(value, known, &names).is_some()
            || words::find_code(value, known).is_some()
            || words::has_path(value, known, &names)
    }

    /// Reports whether the value is the id of a record that the user named by a word of it.
    fn is_named_record(&self, value: &str, name: &str, kind: Kind) -> bool {
        let is_id = kind == Kind::Identifier || kind == Kind::Deciding && is_slug(value);
        if !is_id || is_receiver(name) {
            return false;
        }
        let is_own =
            |word: &str| self.names.iter().any(|name| name == word) || words_of(name).iter().any(|own| own == word);
        let is_users = |word: &str| {
            let mut known = self.evidence.user.iter();
            !is_own(word)
                && !action::is_common(word)
                && known.any(|known| action::words(&known.folded).any(|said| said == word))
        };
        let read = || self.evidence.outside.iter().filter(|source| source.has(value));
        read().any(|source| records::names_record(&source.text, value, is_users))
            && !read().any(|source| records::speaks_of(&source.text, value))
    }

    /// Reports whether the user speaks of what stands around the value in the host's own data, such
    /// as the name beside an address.
    fn is_spoken_of(&self, value: &str, known: &Known<'_>) -> bool {
        let Some(at) = known.folded.find(&value.to_ascii_lowercase()) else {
            return false;
        };
        let start = known.folded.floor_char_boundary(at.saturating_sub(80));
        let end = known
            .folded
            .ceil_char_boundary((at + value.len() + 80).min(known.folded.len()));
        let before = known.raw[start..at].rsplit('\n').next().unwrap_or_default();
        let after = known.raw[at..end].split('\n').next().unwrap_or_default();
        let is_name = |word: &&str| word.len() > 2 && word.starts_with(char::is_uppercase);
        let names = before
            .split(|char: char| !char.is_alphanumeric())
            .chain(after.split(|char: char| !char.is_alphanumeric()));
        let is_said = |word: &str| {
            self.evidence
                .user
                .iter()
                .any(|known| words::find(word, known, &[]).is_some())
        };
        names.filter(is_name).any(is_said)
    }

    /// Returns the origin of a value that no trusted text names.
    fn foreign(&self, path: &str, value: &str) -> ValueOrigin {
        match self.evidence.outside.iter().rev().find(|source| source.has(value)) {
            Some(source) => ValueOrigin::new(path, value, OriginKind::Outside).from(&source.name),
            None => ValueOrigin::new(path, value, OriginKind::Composed),
        }
    }
}

/// Returns `true` for a sentence or more.
fn is_prose(value: &str) -> bool {
    value.split_whitespace().count() >= MIN_PROSE && value.trim_end().ends_with(['.', '!', '?'])
}

/// Returns `true` if the argument is run, so that its text is no prose.
fn is_executable(name: &str) -> bool {
    words_of(name).iter().any(|word| EXECUTABLE.contains(&word.as_str()))
}

/// Returns `true` for a name that programs made: without blanks, with a digit or a sign between its
/// parts, such as `T-4480` or `light.porch`. Addresses, paths and long codes are none.
fn is_slug(value: &str) -> bool {
    let is_plain = value.chars().all(|char| char.is_alphanumeric() || "._-".contains(char));
    let has_sign = value.contains(|char: char| char.is_ascii_digit() || "._-".contains(char));
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    is_plain
        && has_sign
        && value.len() <= 64
        && digits < 8
        && numbers::parse(value).is_none()
        && !addresses::is_web(value)
}

fn property<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    schema?.get("properties")?.get(name)
}

fn is_default(value: &Value, schema: Option<&Value>) -> bool {
    schema.and_then(|schema| schema.get("default")) == Some(value)
}
