//! Datasets: the cases of an evaluation, as lines of JSON.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use rockbot_schema::SchemaError;
use serde::{Deserialize, Serialize};

use crate::expect::Expect;

/// Maximum length of a dataset, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum length of the id that a case without an id gets from its question, in characters.
const MAX_ID: usize = 60;

/// The cases of an evaluation.
///
/// A file has a case in each line, as JSON; empty lines and lines that begin with `//` are
/// skipped:
///
/// ```
/// use rockbot_eval::Dataset;
///
/// let dataset = Dataset::parse(r#"
/// {"id": "capital", "ask": "The capital of Norway?", "expect": {"states": "Oslo"}}
/// {"id": "cat", "turns": [{"ask": "My cat is Miso."}, {"ask": "Who is my cat?", "expect": {"states": "Miso"}}]}
/// "#)?;
/// assert_eq!(dataset.cases()[1].turns.len(), 2);
///
/// let error = Dataset::parse(r#"{"ask": "Hi", "expect": {"contain": "x"}}"#).unwrap_err();
/// assert!(error.to_string().starts_with("line 1: unknown field `contain`, expected one of"));
/// # Ok::<(), rockbot_eval::DatasetError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    cases: Vec<Case>,
}

/// A conversation of one question or more, with expectations of the answers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Case {
    /// The name of the case in reports and comparisons.
    pub id: String,
    /// The questions, in order.
    pub turns: Vec<CaseTurn>,
}

/// A question of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseTurn {
    /// The question.
    pub ask: String,
    /// The expectations of the answer. Default: there must be an answer.
    #[serde(default)]
    pub expect: Expect,
}

/// An error of a dataset: it names the line or the case.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is longer than 64 MiB.
    #[error("{} has more than 64 MiB: split it", .0.display())]
    TooLarge(PathBuf),
    /// A line is no case.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The problem, in words.
        problem: String,
    },
    /// Two cases have the same id.
    #[error("two cases have the id `{0}`: reports and comparisons need ids that differ")]
    SameId(String),
    /// The schema of a case cannot be used.
    #[error("case `{case}`: the schema cannot be used")]
    Schema {
        /// The id of the case.
        case: String,
        /// The cause.
        source: SchemaError,
    },
    /// There is no case.
    #[error("the dataset has no case: write one in each line, such as {{\"ask\": \"Hi\"}}")]
    Empty,
}

/// The message, and the cause of a file that cannot be read: a `main` that returns the error prints
/// this.
impl fmt::Debug for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match std::error::Error::source(self) {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl DatasetError {
    /// Returns `false`: the dataset stays as it is.
    pub fn retry_helps(&self) -> bool {
        false
    }
}

/// A line of a dataset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: Option<String>,
    ask: Option<String>,
    expect: Option<Expect>,
    turns: Option<Vec<CaseTurn>>,
}

impl Case {
    /// Creates a case without questions.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            turns: Vec::new(),
        }
    }

    /// Adds a question, and expectations of its answer.
    #[must_use]
    pub fn ask(mut self, question: impl Into<String>, expect: Expect) -> Self {
        self.turns.push(CaseTurn {
            ask: question.into(),
            expect,
        });
        self
    }

    fn of(line: Line) -> Result<Self, String> {
        let turns = match (line.ask, line.turns) {
            (Some(ask), None) => {
                let expect = line.expect.unwrap_or_default();
                vec![CaseTurn { ask, expect }]
            }
            (None, Some(turns)) if line.expect.is_none() && !turns.is_empty() => turns,
            (None, Some(_)) if line.expect.is_some() => return Err("`expect` stands beside each `ask`".to_owned()),
            _ => return Err("a case needs `ask`, or `turns` with one question or more".to_owned()),
        };
        let id = line.id.unwrap_or_else(|| turns[0].ask.chars().take(MAX_ID).collect());
        Ok(Self { id, turns })
    }
}

impl Dataset {
    /// Creates a dataset of these cases.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no case, if two cases have the same id, or if a schema cannot be
    /// used.
    pub fn new(cases: impl IntoIterator<Item = Case>) -> Result<Self, DatasetError> {
        let cases: Vec<_> = cases.into_iter().collect();
        if cases.is_empty() {
            return Err(DatasetError::Empty);
        }
        let mut ids = HashSet::new();
        for case in &cases {
            if !ids.insert(&case.id) {
                return Err(DatasetError::SameId(case.id.clone()));
            }
            for turn in &case.turns {
                turn.expect.check_schema().map_err(|source| DatasetError::Schema {
                    case: case.id.clone(),
                    source,
                })?;
            }
        }
        Ok(Self { cases })
    }

    /// Reads a dataset from a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or has more than 64 MiB, and the errors of
    /// [`Dataset::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, DatasetError> {
        let path = path.as_ref();
        let unreadable = |source| DatasetError::Unreadable {
            path: path.to_owned(),
            source,
        };
        if fs::metadata(path).map_err(unreadable)?.len() > MAX_BYTES {
            return Err(DatasetError::TooLarge(path.to_owned()));
        }
        Self::parse(&fs::read_to_string(path).map_err(unreadable)?)
    }

    /// Parses a dataset: a case in each line. A case without an id is named after its first question.
    ///
    /// # Errors
    ///
    /// Returns an error that names the line if a line is no case, and the errors of [`Dataset::new`].
    pub fn parse(text: &str) -> Result<Self, DatasetError> {
        let mut cases = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let text = line.trim();
            if text.is_empty() || text.starts_with("//") {
                continue;
            }
            let case = serde_json::from_str(text)
                .map_err(|error| without_place(&error))
                .and_then(Case::of);
            cases.push(case.map_err(|problem| DatasetError::Line {
                line: number + 1,
                problem,
            })?);
        }
        Self::new(cases)
    }

    /// Returns the cases, in order.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Keeps the cases whose id contains `part`.
    #[must_use]
    pub fn matching(mut self, part: &str) -> Self {
        self.cases.retain(|case| case.id.contains(part));
        self
    }
}

/// Returns the words of an error of JSON, with the column alone: each line is a document of its own.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words);
    format!("{words} (column {})", error.column())
}
