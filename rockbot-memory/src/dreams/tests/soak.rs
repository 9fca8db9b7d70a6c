//! A soak: many nights with a model that answers anything.

use std::sync::Mutex;

use proptest::prelude::*;
use rockbot_core::chat::{ChatCall, ChatError, ChatResponse, ModelInfo, ModelTier};

use super::super::coverage::{Vocabulary, missing};
use super::super::replay::is_protected;
use super::*;

/// Nights of one run.
const NIGHTS: u64 = 200;

/// A model that merges, contradicts and makes up what it likes, by a generator of its own.
#[derive(Debug)]
struct Wild(Mutex<u64>);

impl Wild {
    fn next(&self, below: usize) -> usize {
        let mut state = self.0.lock().unwrap();
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % below.max(1)
    }
}

#[async_trait]
impl ChatClient for Wild {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let asked = call.request.messages[1].text();
        let lines = asked
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.split_once("] "));
        let (ids, texts): (Vec<_>, Vec<_>) = lines.unzip();
        let all = texts.join(" ");
        let some = texts.first().copied().unwrap_or_default().to_owned();
        let content = [all, some, String::new(), "Obey.".to_owned()][self.next(4)].clone();
        let answer = match self.next(8) {
            0 => "{".to_owned(),
            1 => serde_json::json!({ "toDelete": ids }).to_string(),
            2 | 3 => {
                serde_json::json!({ "contradictions": [{ "ids": ids.iter().take(2).collect::<Vec<_>>() }] }).to_string()
            }
            _ => {
                let sources = &ids[..ids.len().saturating_sub(self.next(2))];
                serde_json::json!({ "toSave": [{ "content": content, "sourceIds": sources }] }).to_string()
            }
        };
        Ok(ChatResponse::text(answer))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

const NOUNS: [&str; 6] = ["cat", "garden", "car", "report", "tea", "boat"];
const VERBS: [&str; 4] = ["likes", "needs", "keeps", "paints"];

/// Saves a memory; every third is protected.
async fn learn(world: &World, number: u64, seed: u64) {
    let pick =
        |from: &[&str], salt: u64| from[((seed ^ number).wrapping_mul(salt) >> 7) as usize % from.len()].to_owned();
    let name = ["Ada", "Bo", "Cleo"][(number % 3) as usize];
    let text = format!(
        "{name} {} the {} since {}.",
        pick(&VERBS, 31),
        pick(&NOUNS, 17),
        2000 + number % 5
    );
    let importance = if number.is_multiple_of(3) { 0.9 } else { 0.4 };
    let from = if number.is_multiple_of(7) {
        Provenance::new("tool:web", Trust::Untrusted)
    } else {
        Provenance::USER
    };
    let entry =
        MemoryEntry::new(format!("m{number:04}"), text, world.clock.now(), from).with_importance_score(importance);
    world.memory.inner.save(&Principal::default(), entry).await.unwrap();
}

/// Returns the live memory that stands for `entry` now.
fn standing<'a>(all: &'a [Arc<MemoryEntry>], entry: &'a Arc<MemoryEntry>) -> Option<&'a Arc<MemoryEntry>> {
    let mut at = entry;
    for _ in 0..all.len() {
        match &at.superseded_by {
            None => return at.is_live().then_some(at),
            Some(by) => at = all.iter().find(|other| other.id == *by)?,
        }
    }
    None
}

async fn nights(seed: u64) -> Result<(), TestCaseError> {
    let world = World::asking(Wild(Mutex::new(seed)));
    let passes = [
        DreamPass::DuplicateFold,
        DreamPass::MemoryConsolidation,
        DreamPass::ContradictionSweep,
    ];
    let world = world.only(&passes).applying(&DreamPass::ALL);
    let process = world.start(None).await;
    for night in 0..NIGHTS {
        if night.is_multiple_of(4) {
            learn(&world, night / 4, seed).await;
        }
        world.clock.advance(DAY);
        process.dreams.dream().await.unwrap();
    }
    let all = world.all().await;
    prop_assert!(all.len() as u64 >= NIGHTS / 4, "nothing is deleted");
    let vocabulary = Vocabulary::of(all.iter().map(|entry| entry.content.as_str()));
    for entry in all.iter().filter(|entry| is_protected(entry)) {
        let stands = standing(&all, entry);
        let stands = stands.ok_or_else(|| TestCaseError::fail(format!("{} is lost", entry.content)))?;
        let lost = missing(&entry.content, &stands.content, &vocabulary);
        prop_assert!(lost.is_empty(), "{} became {}", entry.content, stands.content);
        prop_assert!(
            stands.provenance.trust <= entry.provenance.trust,
            "{} gained trust",
            entry.content
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    #[test]
    fn two_hundred_nights_lose_no_protected_fact(seed in any::<u64>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(nights(seed))?;
    }
}
