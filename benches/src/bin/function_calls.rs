//! Measures how many samples of a public function-calling suite a model solves through an agent
//! and a bare loop.
//!
//! Usage: `function_calls FOLDER [native | text] [SAMPLES] [--bare] [--told]`: the folder `data`
//! of `bfcl-eval`, the form of calls (`native`), and the samples of each category (15). The
//! server is that of `OPENAI_BASE_URL`. With `--bare` the bare loop is measured instead of the
//! agent, with `--told` each verdict is printed.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rockbot_benches::function_suite::bare_loop::Server;
use rockbot_benches::function_suite::sample::{CATEGORIES, Sample, load};
use rockbot_benches::function_suite::{CallForm, Called, agent, verdict};
use rockbot_core::chat::ChatClient;
use rockbot_llm::ChatTiers;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let (flags, plain): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let folder = plain.first().ok_or("name the folder `data` of bfcl-eval")?;
    let form = match plain.get(1).map(String::as_str) {
        Some("text") => CallForm::Text,
        _ => CallForm::Native,
    };
    let count = plain.get(2).and_then(|text| text.parse().ok()).unwrap_or(15);
    let asked = Asked::new(flags.iter().any(|flag| flag == "--bare"))?;
    let mut right = 0;
    let mut all = 0;
    for category in CATEGORIES {
        let samples = load(Path::new(folder), category, count)?;
        let mut solved = 0;
        for sample in &samples {
            let told = match asked.calls(sample, form).await {
                Ok(calls) => verdict::check(&sample.expected, &calls),
                Err(problem) => Err(problem),
            };
            solved += usize::from(told.is_ok());
            if flags.iter().any(|flag| flag == "--told") {
                println!("  {} {}", sample.id, told.err().unwrap_or_else(|| "right".to_owned()));
            }
        }
        println!("{category}: {solved} of {}", samples.len());
        right += solved;
        all += samples.len();
    }
    println!("all: {right} of {all}");
    Ok(())
}

/// The agent or the bare loop that is asked.
enum Asked {
    Agent(Arc<dyn ChatClient>),
    BareLoop(Server),
}

impl Asked {
    fn new(bare: bool) -> Result<Self, String> {
        if !bare {
            let model = ChatTiers::from_env().map_err(|error| error.to_string())?;
            return Ok(Self::Agent(Arc::new(model)));
        }
        let base = std::env::var("OPENAI_BASE_URL").map_err(|_| "set OPENAI_BASE_URL")?;
        let model = std::env::var("OPENAI_MODEL").unwrap_or_else(|_| "local".to_owned());
        Ok(Self::BareLoop(Server::new(&base, &model)))
    }

    async fn calls(&self, sample: &Sample, form: CallForm) -> Result<Vec<Called>, String> {
        match self {
            Self::Agent(model) => agent::calls(sample, form, model.clone()).await,
            Self::BareLoop(server) => server.calls(sample, form).await,
        }
    }
}
