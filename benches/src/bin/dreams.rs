//! Measures whether dreams help: recall before and after a week of dreams, for each pass alone and
//! for all together.
//!
//! Usage: `dreams [--kinds]`. Prints tables in Markdown: three libraries of 60 conversations, then
//! two that were held out, each with a model that is right and with a model that talks nonsense in
//! a fifth of its answers. `--kinds` adds the right answers for each kind of question.

use rockbot_benches::dreams::{Dreamer, Library, MEASURED, Score, before, searched, week, whole};
use rockbot_core::BoxError;
use rockbot_memory::dreams::DreamPass;

const CONVERSATIONS: usize = 60;

/// Seeds of the libraries by which the passes were mended, and of the libraries held out.
const SEEDS: [(&str, &[u64]); 2] = [("shown", &[1, 2, 3]), ("held out", &[4, 5])];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let shows_kinds = std::env::args().any(|argument| argument == "--kinds");
    let mut rows: Vec<(String, Vec<DreamPass>)> = MEASURED.map(|pass| (pass.name().to_owned(), vec![pass])).to_vec();
    rows.push(("all together".to_owned(), MEASURED.to_vec()));
    for (name, seeds) in SEEDS {
        let libraries: Vec<_> = seeds.iter().map(|seed| Library::new(CONVERSATIONS, *seed)).collect();
        println!("\n{name} ({} libraries)\n", libraries.len());
        println!(
            "| dreams | recall@10 % | right % | tokens a question | memories | contradictions served | injected |"
        );
        println!("|---|---|---|---|---|---|---|");
        let mut base = Score::default();
        for library in &libraries {
            base.join(&before(library).await?);
        }
        print("whole conversation", &joined(&libraries, whole), shows_kinds);
        print("search the text", &joined(&libraries, searched), shows_kinds);
        print("none", &base, shows_kinds);
        for (name, passes) in &rows {
            for nonsense in [0, 20] {
                let mut score = Score::default();
                for library in &libraries {
                    score.join(&week(library, Dreamer::new(library, nonsense), passes).await?);
                }
                let with = if nonsense == 0 { "" } else { ", 20 % nonsense" };
                print(&format!("{name}{with}"), &score, shows_kinds);
            }
        }
    }
    Ok(())
}

fn joined(libraries: &[Library], score: fn(&Library) -> Score) -> Score {
    let mut all = Score::default();
    libraries.iter().for_each(|library| all.join(&score(library)));
    all
}

fn print(name: &str, score: &Score, shows_kinds: bool) {
    println!("| {name} | {} |", score.row());
    if shows_kinds {
        println!("<!-- {} -->", score.kinds());
    }
}
