//! Dreams of a whole host: users come first, recall reaches what was said, and settings decide.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::agent::{AgentHost, FromConfig};
use rockbot::config::Config;
use rockbot::memory::dreams::{DreamPass, PlanState};
use rockbot::memory::{DreamOptions, Dreaming, Dreams, Memory};
use rockbot::store::{LongTermMemory, MemoryEntry};
use rockbot::testing::ManualClock;
use rockbot::tools::scheduling::CronTimes;
use rockbot::{Clock, Principal, Timestamp};
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::content::Provenance;
use rockbot_core::context::Priority;
use tokio::sync::Notify;

const MERGE: &str =
    r#"{"toSave": [{"content": "Miso the cat likes tuna and sleeps on the couch.", "sourceIds": ["a", "b"]}]}"#;

/// A model that answers users at once, and a dream only when it may.
#[derive(Debug, Default)]
struct Model {
    asked: Notify,
    may_answer: Notify,
    requests: std::sync::Mutex<Vec<String>>,
}

#[async_trait]
impl ChatClient for Model {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        if call.cx.priority() == Priority::Dream {
            self.asked.notify_one();
            self.may_answer.notified().await;
            return Ok(ChatResponse::text(MERGE));
        }
        let texts = call.request.messages.iter().map(|message| message.text().into_owned());
        self.requests.lock().unwrap().extend(texts);
        Ok(ChatResponse::text("Yes."))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

async fn host(model: Arc<Model>) -> (AgentHost, Arc<dyn LongTermMemory>) {
    let others = DreamPass::ALL
        .into_iter()
        .filter(|pass| *pass != DreamPass::MemoryConsolidation);
    let options = DreamOptions::default().with_disabled(others);
    let host = AgentHost::in_memory()
        .chat(model)
        // Before the memory that it tends: the order does not matter.
        .add(Dreaming::new().with_options(options))
        .add(Memory::none().with_long_term())
        .build()
        .unwrap();
    host.start().await.unwrap();
    let memory: Arc<dyn LongTermMemory> = host.parts().require().unwrap();
    for (id, text) in [
        ("a", "The cat Miso likes tuna and sleeps on the chesterfield."),
        ("b", "Miso the cat likes tuna and sleeps on the couch."),
    ] {
        let entry = MemoryEntry::new(id, text, Timestamp::default(), Provenance::USER);
        memory.save(&Principal::default(), entry).await.unwrap();
    }
    (host, memory)
}

#[tokio::test(start_paused = true)]
async fn a_user_interrupts_a_dream_which_begins_anew() {
    let model = Arc::new(Model::default());
    let (host, memory) = host(model.clone()).await;
    let dreams: Arc<Dreams> = host.parts().require().unwrap();
    let before = memory.list(&Principal::default()).await.unwrap();
    let cycle = tokio::spawn({
        let dreams = dreams.clone();
        async move { dreams.dream().await }
    });
    model.asked.notified().await;
    // The dream holds the model, and the user has an answer all the same.
    assert_eq!(host.agent().ask("s", "Is it late?").await.unwrap().text, "Yes.");
    assert_eq!(memory.list(&Principal::default()).await.unwrap(), before);
    assert!(
        dreams.plans().unwrap().is_empty(),
        "nothing is left of the interrupted pass"
    );
    model.asked.notified().await;
    model.may_answer.notify_one();
    cycle.await.unwrap().unwrap();
    let states: Vec<_> = dreams.plans().unwrap().iter().map(|plan| plan.state).collect();
    assert_eq!(states, [PlanState::Proposed]);
    host.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_recalled_where_its_view_lacks_the_words() {
    let model = Arc::new(Model::default());
    let (host, _) = host(model.clone()).await;
    let dreams: Arc<Dreams> = host.parts().require().unwrap();
    model.may_answer.notify_one();
    dreams.dream().await.unwrap();
    let plan = dreams.plans().unwrap()[0].clone();
    dreams.apply(&plan.id).await.unwrap();
    let shown = async |question: &str| {
        model.requests.lock().unwrap().clear();
        host.agent().ask("s", question).await.unwrap();
        model.requests.lock().unwrap().join("\n")
    };
    let view = shown("Where does the cat Miso sleep, on the couch?").await;
    assert!(
        view.contains("Miso the cat likes tuna and sleeps on the couch."),
        "{view}"
    );
    assert!(!view.contains("chesterfield"), "{view}");
    let episode = shown("Who was it that used the old chesterfield again?").await;
    assert!(
        episode.contains("(said as): The cat Miso likes tuna and sleeps on the chesterfield."),
        "{episode}"
    );
    host.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn the_section_dream_turns_dreams_on_and_off() {
    let folder = tempfile::tempdir().unwrap();
    let build = |text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let host = AgentHost::configured(&config, folder.path()).unwrap().build();
        host.map(|host| host.parts().get::<Dreams>().is_some())
            .map_err(|error| error.to_string())
    };
    assert_eq!(build(""), Ok(false));
    assert_eq!(build("[Dream]\nInterval = \"04:00:00\""), Ok(true));
    assert_eq!(build("[Dream]\nEnabled = false\nInterval = \"04:00:00\""), Ok(false));
    let problem = build("[Dream]\nIntervall = \"04:00:00\"").unwrap_err();
    assert!(
        problem.contains("`Dream.Intervall` in `agent.toml` is not a setting; did you mean `Interval`?"),
        "{problem}"
    );
    let problem = build("[Dream]\nSkillGapTier = \"huge\"").unwrap_err();
    assert!(
        problem.contains("`Dream.SkillGapTier` in `agent.toml`: expected `Low`, `Balanced` or `High`"),
        "{problem}"
    );
}

/// Returns the times of cycles at `cron` in Oslo, from `start` (in milliseconds) on, for `hours`.
async fn cycles(cron: &str, start: u64, hours: u32) -> Vec<String> {
    let clock = ManualClock::new(Timestamp::from_millis(start));
    let others = DreamPass::ALL
        .into_iter()
        .filter(|pass| *pass != DreamPass::DuplicateFold);
    let times = CronTimes::new(cron, Some("Europe/Oslo")).unwrap();
    let dreaming = Dreaming::new().with_options(DreamOptions::default().with_disabled(others));
    let host = AgentHost::in_memory()
        .clock(clock.clone())
        .chat(Arc::new(Model::default()))
        .add(dreaming.with_times(move |after| times.next_after(after)))
        .add(Memory::none().with_long_term())
        .build()
        .unwrap();
    host.start().await.unwrap();
    let memory: Arc<dyn LongTermMemory> = host.parts().require().unwrap();
    let dreams: Arc<Dreams> = host.parts().require().unwrap();
    // Each cycle finds a new duplicate to fold, and its plan has the time of the cycle.
    let learn = async |id: usize| {
        let entry = MemoryEntry::new(format!("m{id:03}"), "Likes tea.", clock.now(), Provenance::USER);
        memory.save(&Principal::default(), entry).await.unwrap();
    };
    learn(0).await;
    for half_hour in 0..2 * hours {
        let plans = dreams.plans().unwrap().len();
        learn(plans + 1).await;
        if half_hour > 0 {
            clock.advance(Duration::from_secs(30 * 60));
        }
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_secs(5 * 60)).await;
            tokio::task::spawn_blocking(|| ()).await.unwrap();
        }
    }
    host.shutdown(Duration::from_secs(1)).await;
    let plans = dreams.plans().unwrap();
    plans
        .iter()
        .map(|plan| plan.id.replace("-duplicate-fold", ""))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn cycles_at_half_past_two_come_once_a_night_when_the_clocks_change() {
    // On 29 March 2026 the clocks of Oslo go from two to three, on 25 October from three to two.
    let spring = cycles("30 2 * * *", 1_774_612_800_000, 72).await;
    let expected = [
        "2026-03-27T12-00-00Z",
        "2026-03-28T01-30-00Z",
        "2026-03-29T01-00-00Z",
        "2026-03-30T00-30-00Z",
    ];
    assert_eq!(spring, expected);
    let autumn = cycles("30 2 * * *", 1_792_756_800_000, 72).await;
    let expected = [
        "2026-10-23T12-00-00Z",
        "2026-10-24T00-30-00Z",
        "2026-10-25T00-30-00Z",
        "2026-10-26T01-30-00Z",
    ];
    assert_eq!(autumn, expected);
}

#[tokio::test(start_paused = true)]
async fn a_configured_host_dreams_at_the_times_of_its_zone() {
    let folder = tempfile::tempdir().unwrap();
    let configured = |text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        AgentHost::configured(&config, folder.path()).map_err(|error| error.to_string())
    };
    let problem = configured("[Dream]\nCronSchedule = \"30 25 * * *\"").err().unwrap();
    assert!(problem.starts_with("`Dream.CronSchedule`: "), "{problem}");
    let text = "[AgentHost]\nTimeZone = \"Europe/Oslo\"\n[Dream]\nCronSchedule = \"30 3 * * *\"";
    let host = configured(text).unwrap().build().unwrap();
    assert!(host.parts().get::<Dreams>().is_some());
}
