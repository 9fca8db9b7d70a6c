//! Dreams: duplicates are folded, a contradiction is proposed, and a person applies the plan and
//! takes it back.
//!
//! `cargo run --example dreams`. The model is rehearsed, so that it runs without one. The plans are
//! in `data/dreams/dreams`, as files that you can read.

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use rockbot::chat::{ChatCall, ChatError, ModelInfo};
use rockbot::content::Provenance;
use rockbot::memory::dreams::{DreamPass, DreamPlan};
use rockbot::memory::{DreamOptions, Dreaming, Dreams, Memory};
use rockbot::prelude::*;
use rockbot::store::{LongTermMemory, MemoryEntry};
use rockbot::{Principal, Timestamp};

/// A stand-in for a model that finds the contradiction.
#[derive(Debug)]
struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        let answer = r#"{"contradictions": [{"ids": ["oslo", "bergen"], "reason": "nobody lives in two towns"}]}"#;
        Ok(ChatResponse::text(answer))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Saves what was said in four conversations.
async fn remember(memory: &dyn LongTermMemory) -> Result<(), BoxError> {
    let said = [
        ("tea", "Likes green tea."),
        ("oslo", "Lives in Oslo."),
        ("more-tea", "likes green tea"),
        ("bergen", "Lives in Bergen."),
    ];
    for (day, (id, text)) in (1_u64..).zip(said) {
        let at = Timestamp::from_millis(day * 24 * 60 * 60 * 1_000);
        memory
            .save(&Principal::default(), MemoryEntry::new(id, text, at, Provenance::USER))
            .await?;
    }
    Ok(())
}

/// Prints the memories that recall finds.
async fn print_memories(memory: &dyn LongTermMemory) -> Result<(), BoxError> {
    let entries = memory.list(&Principal::default()).await?;
    let live = entries.iter().filter(|entry| entry.is_live());
    let texts: Vec<_> = live.map(|entry| entry.content.as_str()).collect();
    Ok(writeln!(stdout(), "remembers: {}", texts.join(" "))?)
}

/// Prints a plan without its id, which has the time in it.
fn print_plan(plan: &DreamPlan) -> Result<(), BoxError> {
    writeln!(stdout(), "{}: {} ({})", plan.pass, plan.summary, plan.state.name())?;
    for change in &plan.changes {
        writeln!(stdout(), "  {change}")?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let others = DreamPass::ALL
        .into_iter()
        .filter(|pass| !matches!(pass, DreamPass::DuplicateFold | DreamPass::ContradictionSweep));
    let host = AgentHost::builder("dreamer")
        .chat(Rehearsed)
        .data_dir("data/dreams")
        .add(Memory::none().with_long_term())
        // By default a dream begins five minutes after the start, and then every four hours.
        .add(Dreaming::new().with_options(DreamOptions::default().with_disabled(others)))
        .build()?;
    let memory: Arc<dyn LongTermMemory> = host.parts().require()?;
    remember(&*memory).await?;
    host.start().await?;
    print_memories(&*memory).await?;

    let dreams: Arc<Dreams> = host.parts().require()?;
    dreams.dream().await?;
    let plans = dreams.plans()?;
    plans.iter().try_for_each(|plan| print_plan(plan))?;
    print_memories(&*memory).await?;

    // What a model found waits for a person, who may take everything back.
    for plan in plans.iter().filter(|plan| plan.can_be_applied()) {
        print_plan(&*dreams.apply(&plan.id).await?)?;
    }
    print_memories(&*memory).await?;
    for plan in &plans {
        dreams.undo(&plan.id).await?;
    }
    print_memories(&*memory).await?;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
