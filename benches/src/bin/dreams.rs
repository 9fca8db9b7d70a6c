//! Measures whether dreams help: recall after a week of dreams, for each pass alone and for all
//! together.
//!
//! Usage: `dreams [--kinds] [--conversations N] [--model-url URL MODEL]`. Prints tables in Markdown:
//! three libraries of 60 (`N`) conversations, then two that were held out, with a model that is right
//! and with a model a fifth of whose answers is nonsense; with `--model-url` with that model instead,
//! for one library of each. `--kinds` adds the right answers for each kind of question. `--skills`
//! measures the passes over skills instead.

use std::sync::Arc;

use rockbot_benches::dreams::{Library, MEASURED, SKILL_PASSES, Score, Scripted, searched, skills, week, whole};
use rockbot_core::BoxError;
use rockbot_core::chat::ChatClient;
use rockbot_llm::OpenAiChat;

/// Seeds of the libraries by which the passes were mended, and of the libraries held out.
const SEEDS: [(&str, &[u64]); 2] = [("shown", &[1, 2, 3]), ("held out", &[11, 12])];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == "--model-url");
    let real: Option<Arc<dyn ChatClient>> = match at.map(|at| &arguments[at + 1..]) {
        Some([url, model, ..]) => Some(Arc::new(OpenAiChat::builder(url, model).build()?)),
        Some(_) => return Err("use it like this: --model-url URL MODEL".into()),
        None => None,
    };
    let at = arguments.iter().position(|argument| argument == "--conversations");
    let conversations = match at.map(|at| arguments.get(at + 1).map(|number| number.parse())) {
        None => 60,
        Some(Some(Ok(number @ 1..))) => number,
        Some(_) => return Err("use it like this: --conversations 20".into()),
    };
    if arguments.iter().any(|argument| argument == "--skills") {
        return of_skills().await;
    }
    let shows_kinds = arguments.iter().any(|argument| argument == "--kinds");
    for (name, seeds) in SEEDS {
        let seeds = if real.is_some() { &seeds[..1] } else { seeds };
        let libraries: Vec<_> = seeds.iter().map(|seed| Library::new(conversations, *seed)).collect();
        println!("\n{name} ({} libraries)\n", libraries.len());
        println!(
            "| dreams | recall@10 % | right % | tokens a question | memories | contradictions served | injected |"
        );
        println!("|---|---|---|---|---|---|---|");
        let tell = |name: &str, score: &Score| {
            println!("| {name} | {} |", score.row());
            if shows_kinds {
                println!("<!-- {} -->", score.kinds());
            }
        };
        rows(&libraries, real.as_ref(), tell).await?;
    }
    Ok(())
}

/// Prints the table of the passes over skills.
async fn of_skills() -> Result<(), BoxError> {
    for (name, seeds) in SEEDS {
        println!("\n{name} ({} libraries)\n", seeds.len());
        println!("| dreams | right % | tokens an order | skills |\n|---|---|---|---|");
        let alone = SKILL_PASSES
            .iter()
            .map(|pass| (pass.name(), std::slice::from_ref(pass)));
        let all = [("none", &[][..])].into_iter().chain(alone);
        for (name, passes) in all.chain([("all together", &SKILL_PASSES[..])]) {
            for nonsense in [0, 20] {
                let mut score = Score::default();
                for seed in seeds {
                    score = score.and(skills(*seed, nonsense, passes).await?);
                }
                let with = if nonsense == 0 { "" } else { ", 20 % nonsense" };
                println!("| {name}{with} | {} | <!-- {} -->", score.skills(), score.kinds());
            }
        }
    }
    Ok(())
}

/// Tells the figures of the baselines, of each pass alone and of all together, each as soon as it is
/// measured.
async fn rows(
    libraries: &[Library],
    real: Option<&Arc<dyn ChatClient>>,
    tell: impl Fn(&str, &Score),
) -> Result<(), BoxError> {
    let joined = |score: fn(&Library) -> Score| libraries.iter().map(score).fold(Score::default(), Score::and);
    tell("whole conversation", &joined(whole));
    tell("search the text", &joined(searched));
    let alone = MEASURED.iter().map(|pass| (pass.name(), std::slice::from_ref(pass)));
    let all = [("none", &[][..])]
        .into_iter()
        .chain(alone)
        .chain([("all together", &MEASURED[..])]);
    for (name, passes) in all {
        let has_one = real.is_some() || passes.is_empty();
        for nonsense in if has_one { &[0][..] } else { &[0, 20] } {
            let mut score = Score::default();
            for library in libraries {
                let scripted = || Arc::new(Scripted::new(library, *nonsense)) as Arc<dyn ChatClient>;
                let model = real.cloned().unwrap_or_else(scripted);
                score = score.and(week(library, model, passes).await?);
            }
            let with = if *nonsense == 0 { "" } else { ", 20 % nonsense" };
            tell(&format!("{name}{with}"), &score);
        }
    }
    Ok(())
}
