//! The command line of the evaluation.

use std::str::FromStr;
use std::time::Duration;

use super::conversations;
use super::meter::Sampling;
use super::policies::{self, Configuration, POLICIES, Policy, TEXT_CALLS, TIERS};
use super::task::{Kind, Task};
use super::tasks;
use super::trial::Limits;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Runs tasks against a model, with each policy of a host on and off, and prints what they bring and cost.

    evaluate [OPTIONS]

Options:
    --tasks NAME        only tasks of this kind or with this id, or this conversation; may be repeated
    --limit N           at most N tasks, or conversations, of each kind
    --policy NAME       compare only this policy with the base, or run the base alone with `base`; may be repeated
    --in-text           the server or the model has no native tool calls: all configurations call in text
    --calls N           at most N model calls a task, judges apart (default: 8); four times as many for `parallel`
    --seconds N         at most N seconds a task (default: 60)
    --max-tokens N      at most N tokens an answer (default: 512)
    --temperature X     0 to 2, or `none` for the server's own (default: 0)
    --list              print tasks and policies, and end
    --json              print JSON instead of a table, with every task
    --help              print this

How each task went is told on standard error. The model is set in the environment, as for the example `chat`:
OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, or ROCKBOT_LLM__BALANCED__ENDPOINT and so on.";

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    tasks: Vec<String>,
    limit: usize,
    /// The named policies; `None` for all.
    policies: Option<Vec<&'static Policy>>,
    in_text: bool,
    pub(crate) limits: Limits,
    pub(crate) sampling: Sampling,
    pub(crate) list: bool,
    pub(crate) json: bool,
    pub(crate) help: bool,
}

impl Arguments {
    /// Parses the command line; the error names the wrong argument.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            tasks: Vec::new(),
            limit: usize::MAX,
            policies: None,
            in_text: false,
            limits: Limits {
                model_calls: 8,
                time: Duration::from_secs(60),
            },
            sampling: Sampling {
                temperature: Some(0.0),
                max_output_tokens: 512,
            },
            list: false,
            json: false,
            help: false,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("`{word}` needs a value; see --help"))
            };
            match word.as_str() {
                "--tasks" => arguments.tasks.push(task_name(value()?)?),
                "--limit" => arguments.limit = number(&word, &value()?)?,
                "--policy" => {
                    let named = arguments.policies.get_or_insert_default();
                    named.extend(policy(&value()?)?);
                }
                "--in-text" => arguments.in_text = true,
                "--calls" => arguments.limits.model_calls = number(&word, &value()?)?,
                "--seconds" => arguments.limits.time = Duration::from_secs(number(&word, &value()?)?),
                "--max-tokens" => arguments.sampling.max_output_tokens = number(&word, &value()?)?,
                "--temperature" => arguments.sampling.temperature = temperature(&word, &value()?)?,
                "--list" => arguments.list = true,
                "--json" => arguments.json = true,
                "--help" | "-h" => arguments.help = true,
                other => return Err(format!("there is no argument `{other}`; see --help")),
            }
        }
        Ok(arguments)
    }

    /// Returns the tasks to run.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        let named = |task: &Task| self.tasks.iter().any(|name| is_named(task, name));
        let chosen = tasks::all()
            .into_iter()
            .filter(|task| self.tasks.is_empty() || named(task));
        let chosen: Vec<_> = chosen.collect();
        let of = |kind| {
            let of_kind = conversations(&chosen).filter(move |turns| turns[0].kind == kind);
            of_kind.take(self.limit).flatten().cloned()
        };
        Kind::ALL.into_iter().flat_map(of).collect()
    }

    /// Returns the configurations to compare; unless policies are named, all that can make a
    /// difference.
    pub(crate) fn configurations(&self, has_tiers: bool) -> Vec<Configuration> {
        if let Some(named) = &self.policies {
            return policies::compared(named, self.in_text);
        }
        let differs = |policy: &&Policy| match policy.name {
            TEXT_CALLS => !self.in_text,
            TIERS => has_tiers,
            _ => true,
        };
        let each: Vec<_> = POLICIES.iter().filter(differs).collect();
        policies::compared(&each, self.in_text)
    }
}

fn is_named(task: &Task, name: &str) -> bool {
    task.name() == name || task.kind.name() == name
}

fn task_name(name: String) -> Result<String, String> {
    if tasks::all().iter().any(|task| is_named(task, &name)) {
        Ok(name)
    } else {
        Err(format!("there is no task and no kind of tasks `{name}`; see --list"))
    }
}

/// Returns the policy of this name, or `None` for the base.
fn policy(name: &str) -> Result<Option<&'static Policy>, String> {
    if name == "base" {
        return Ok(None);
    }
    let found = policies::find(name);
    found
        .map(Some)
        .ok_or_else(|| format!("there is no policy `{name}`; see --list"))
}

fn number<N: FromStr + PartialOrd + From<u8>>(option: &str, text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number > N::from(0));
    number.ok_or_else(|| format!("`{option}` needs a whole number above 0, not `{text}`"))
}

fn temperature(option: &str, text: &str) -> Result<Option<f32>, String> {
    if text == "none" {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|number| (0.0..=2.0).contains(number));
    let wrong = || format!("`{option}` needs a number from 0 to 2, or `none`, not `{text}`");
    number.map(Some).ok_or_else(wrong)
}
