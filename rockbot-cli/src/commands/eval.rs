//! `rockbot eval`: asks the questions of a dataset, and reports how the agent did.

use std::io::{IsTerminal as _, stderr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use rockbot::eval::{Approving, CaseResult, Dataset, Evaluation, Report};
use rockbot::prelude::*;

use crate::agent::Setup;
use crate::chat::terminal::{self, clean};
use crate::chat::{questions, shut_down};

/// The options of an evaluation.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The dataset: a case in each line, such as {"ask": "Who are you?", "expect": {"states": "Ada"}}
    dataset: PathBuf,
    /// Run only the cases whose id contains this text
    #[arg(long, value_name = "TEXT")]
    case: Option<String>,
    /// Run each case this often
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// Run this many cases at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    parallel: usize,
    /// Wait this many seconds for an answer
    #[arg(long, value_name = "N", default_value_t = 300)]
    seconds: u64,
    /// Approve every tool call; without this a call that needs an approval is refused
    #[arg(long)]
    yes: bool,
    /// Write the report into this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report into this file, as JUnit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Compare with the report in this file, which --json wrote; the exit code is 0 unless more cases
    /// got worse than chance makes
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// Runs the evaluation and prints its report. Returns `false` if a run failed, or if the agent got
/// worse than it was in the report to compare with.
pub(crate) async fn run(setup: &Setup<'_>, options: &Options) -> Result<bool, BoxError> {
    let dataset = Dataset::read(&options.dataset)?.matching(options.case.as_deref().unwrap_or_default());
    if dataset.cases().is_empty() {
        return Err("no case has this text in its id".into());
    }
    // Read before the questions cost anything.
    let before = options.against.as_deref().map(read).transpose()?;
    let host = setup.open(questions().0).await?;
    host.start().await?;
    let report = evaluated(&host, dataset, options).await;
    shut_down(&host).await;
    let report = report?;
    write(options, &report)?;
    terminal::print(&format!("{}\n", clean(&report.to_string())));
    let Some(before) = before else {
        return Ok(report.is_passed());
    };
    let compared = report.compare(&before);
    terminal::print(&format!("\n{}\n", clean(&compared.to_string())));
    Ok(!compared.is_worse())
}

async fn evaluated(host: &AgentHost, dataset: Dataset, options: &Options) -> Result<Report, BoxError> {
    let progress = Progress::new(dataset.cases().len() * options.runs.max(1) as usize);
    let evaluation = Evaluation::new(dataset)
        .with_runs(options.runs)
        .with_parallel(options.parallel)
        .with_time_limit(Duration::from_secs(options.seconds))
        .with_judge(host.parts().require::<dyn ChatClient>()?)
        .with_listener(move |result| progress.tell(result));
    let agent = host.agent().clone();
    Ok(if options.yes {
        evaluation.run(Approving::new(agent)).await?
    } else {
        evaluation.run(agent).await?
    })
}

fn read(file: &Path) -> Result<Report, BoxError> {
    Report::read(file).map_err(|error| format!("{} is no report: {error}", file.display()).into())
}

fn write(options: &Options, report: &Report) -> Result<(), BoxError> {
    let failed = |file: &Path, error: std::io::Error| format!("{} cannot be written: {error}", file.display());
    if let Some(file) = &options.json {
        let json = serde_json::to_vec_pretty(report)?;
        std::fs::write(file, json).map_err(|error| failed(file, error))?;
    }
    if let Some(file) = &options.junit {
        std::fs::write(file, report.to_junit()).map_err(|error| failed(file, error))?;
    }
    Ok(())
}

/// The progress of an evaluation on standard error: one line that changes at a terminal, else a line
/// for each run.
struct Progress {
    runs: usize,
    /// Runs that ended, and runs that passed.
    ended: Mutex<(usize, usize)>,
    is_line: bool,
}

impl Progress {
    fn new(runs: usize) -> Self {
        Self {
            runs,
            ended: Mutex::default(),
            is_line: stderr().is_terminal(),
        }
    }

    fn tell(&self, result: &CaseResult) {
        let Ok(mut ended) = self.ended.lock() else { return };
        let (number, passed) = &mut *ended;
        *number += 1;
        *passed += usize::from(result.is_passed());
        let runs = self.runs;
        if self.is_line {
            let end = if *number == runs { "\n" } else { "" };
            eprint!("\r\x1b[2K{number} of {runs} runs, {passed} passed{end}");
        } else {
            let word = if result.is_passed() { "passed" } else { "failed" };
            eprintln!("{number}/{runs} {}: {word}", clean(&result.case));
        }
    }
}
