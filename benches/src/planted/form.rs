//! The forms that a text can have, and how a record is written in each.

use std::fmt::Write;

use super::template::{Data, Kind};
use super::values::{Numbers, Values};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Paragraphs of sentences, each on one line.
    Prose,
    /// Sections, lists and tables. Of some sections the heading names what the lines at their end are
    /// about.
    Markdown,
    /// An array of objects, indented.
    JsonPretty,
    /// The same on one line, with the escapes that Python's `json` writes.
    JsonLine,
    /// Comma-separated values, with quotes where they are needed.
    Csv,
    /// Source code in three languages.
    Code,
    /// Log lines.
    Logs,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 7] = [
        Self::Prose,
        Self::Markdown,
        Self::JsonPretty,
        Self::JsonLine,
        Self::Csv,
        Self::Code,
        Self::Logs,
    ];
}

const TAKES_ALL: &str = "a String takes everything";

/// A text that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    form: Form,
    text: String,
    /// Number of records and sentences so far.
    written: usize,
}

impl Writer {
    pub(super) fn new(form: Form, bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes + bytes / 50);
        text.push_str(match form {
            Form::JsonPretty => "[\n",
            Form::JsonLine => "[",
            Form::Csv => "id,kind,a,b,c,d,e\n",
            _ => "",
        });
        Self { form, text, written: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(mut self) -> String {
        if matches!(self.form, Form::JsonPretty | Form::JsonLine) {
            self.text.push_str("null]");
        }
        self.text
    }

    /// Writes a sentence that is no record.
    pub(super) fn sentence(&mut self, sentence: &str, numbers: &mut Numbers) {
        let text = match self.form {
            Form::Prose | Form::Markdown => sentence.to_owned(),
            Form::JsonPretty | Form::JsonLine => self.object(&[("kind", "note".into()), ("text", sentence.into())]),
            Form::Csv => format!("{},note,{}", self.written, quoted(sentence)),
            Form::Code => format!("// {sentence}\nlet step_{} = advance(step);", self.written),
            Form::Logs => format!("{} DEBUG trace: {sentence}", self.time()),
        };
        self.push(&text, numbers);
    }

    /// Writes a record, and returns how it is written.
    pub(super) fn record(&mut self, kind: &Kind, values: &Values, data: &Data, numbers: &mut Numbers) -> String {
        let fields = || kind.fields.iter().map(|(name, value)| (*name, values.fill(value)));
        let text = match self.form {
            Form::Prose => values.fill(kind.prose),
            Form::Markdown => return self.markdown(kind, values, data, numbers),
            Form::JsonPretty | Form::JsonLine => {
                let fields: Vec<_> = [("kind", kind.name.to_owned())].into_iter().chain(fields()).collect();
                self.object(&fields)
            }
            Form::Csv => {
                let values = fields().map(|(_, value)| quoted(&value));
                format!(
                    "{},{},{}",
                    self.written,
                    kind.name,
                    values.collect::<Vec<_>>().join(",")
                )
            }
            Form::Code => values.fill(&kind.code),
            Form::Logs => format!("{} {}", self.time(), values.fill(kind.log)),
        };
        self.push(&text, numbers);
        text
    }

    /// Writes a record as an item of a list, as a row of a table, or as a section whose heading names
    /// it and whose last lines hold the rest.
    fn markdown(&mut self, kind: &Kind, values: &Values, data: &Data, numbers: &mut Numbers) -> String {
        let fields: Vec<_> = kind
            .fields
            .iter()
            .map(|(name, value)| (*name, values.fill(value)))
            .collect();
        let text = match numbers.below(3) {
            0 => format!("- {}", values.fill(kind.prose)),
            1 => {
                let cells: Vec<_> = fields.iter().map(|(_, value)| value.as_str()).collect();
                format!("| {} | {} |", kind.name, cells.join(" | "))
            }
            _ => {
                let heading = values.fill(kind.identities[0]);
                write!(self.text, "\n## {heading}\n\n").expect(TAKES_ALL);
                for _ in 0..numbers.below(20) {
                    let sentence = data.fillers[numbers.below(data.fillers.len())];
                    self.sentence(&Values::draw(data, numbers).fill(sentence), numbers);
                }
                self.text.push_str("\n\n");
                let rest = fields.iter().filter(|(_, value)| !heading.contains(value.as_str()));
                let lines: Vec<_> = rest.map(|(name, value)| format!("- **{name}**: {value}")).collect();
                lines.join("\n")
            }
        };
        write!(self.text, "\n{text}\n").expect(TAKES_ALL);
        self.written += 1;
        text
    }

    fn push(&mut self, text: &str, numbers: &mut Numbers) {
        self.text.push_str(text);
        self.text.push_str(match self.form {
            Form::Prose | Form::Markdown if numbers.below(6) == 0 => "\n\n",
            Form::Prose | Form::Markdown => " ",
            Form::JsonPretty => ",\n",
            Form::JsonLine => ", ",
            Form::Code if numbers.below(4) == 0 => "\n\n",
            Form::Csv | Form::Code | Form::Logs => "\n",
        });
        self.written += 1;
    }

    fn object(&self, fields: &[(&str, String)]) -> String {
        let members: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\": {}", serde_json::Value::from(value.as_str())))
            .collect();
        match self.form {
            Form::JsonPretty => format!("  {{\n    {}\n  }}", members.join(",\n    ")),
            _ => escaped(&format!("{{{}}}", members.join(", "))),
        }
    }

    /// Returns the time of the next log line.
    fn time(&self) -> String {
        let seconds = self.written * 7 % 86_400;
        let hours = seconds / 3_600;
        let minutes = seconds / 60 % 60;
        format!(
            "2026-03-{:02}T{hours:02}:{minutes:02}:{:02}Z",
            1 + self.written / 12_343 % 28,
            seconds % 60
        )
    }
}

/// Returns a field of comma-separated values.
fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

/// Returns JSON with escapes for all characters beyond ASCII.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c)
        } else {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| write!(text, "\\u{unit:04x}").expect(TAKES_ALL))
        }
    }
    text
}
