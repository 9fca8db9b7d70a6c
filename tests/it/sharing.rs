//! Traits through `Arc`, and hosts that share what they are built from.

use std::sync::Arc;

use rockbot::agent::{AgentHost, Stores};
use rockbot::content::{Content, MediaPart, MediaSource};
use rockbot::implement::bus::{DeliveryHandler, SubscriptionControl};
use rockbot::implement::store::{
    FeedbackEntry, InMemoryConversationLog, InMemoryFeedbackStore, InMemoryMediaStore, InMemorySkillUsageStore,
    LogOffset, TimelineStore,
};
use rockbot::implement::turn::InMemoryTurnJournal;
use rockbot::memory::ContextSource;
use rockbot::message::{Bus, DeadLetters, Message, MessageHandler, MessagePublisher, MessageSubscriber};
use rockbot::store::{
    ConversationLog, ConversationMemory, FeedbackStore, InMemoryConversationMemory, InMemoryLongTermMemory,
    InMemoryRulesStore, InMemorySkillStore, InMemoryWorkingMemory, LongTermMemory, MediaStore, RulesStore, SkillStore,
    SkillUsageStore, WorkingMemory,
};
use rockbot::testing::{ManualClock, ScriptedModel, SequentialIds};
use rockbot::turn::{HistoryProcessor, InputGuardrail, LoopPolicy, OutputValidator, TurnJournal, TurnObserver};
use rockbot::{Clock, IdSource, Principal, context};
use rockbot::{agent, chat, store, tool};

/// Compiles only if an `Arc` of each trait object implements the trait.
macro_rules! work_through_an_arc {
    ($($of:path),* $(,)?) => {$(
        const _: fn() = || {
            fn implements<T: $of + ?Sized>() {}
            implements::<Arc<dyn $of>>();
        };
    )*};
}

work_through_an_arc! {
    Clock,
    IdSource,
    context::ProgressListener,
    chat::ChatClient,
    chat::EmbeddingClient,
    rockbot::implement::chat::Pricing,
    rockbot::turn::TierSelector,
    tool::ToolExecutor,
    tool::ToolGuide,
    tool::ToolRegistry,
    TurnJournal,
    TurnObserver,
    LoopPolicy,
    HistoryProcessor,
    InputGuardrail,
    OutputValidator,
    Bus,
    DeadLetters,
    DeliveryHandler,
    MessageHandler<Note>,
    MessagePublisher,
    MessageSubscriber,
    SubscriptionControl,
    ContextSource,
    ConversationLog,
    ConversationMemory,
    FeedbackStore,
    LongTermMemory,
    RulesStore,
    SkillStore,
    SkillUsageStore,
    TimelineStore<FeedbackEntry>,
    WorkingMemory,
    store::MediaStore,
    rockbot::implement::store::search::Analyzer,
    agent::AnswerFilter,
    agent::profile::SystemPromptBuilder,
    chat::GatewayLayer,
}

#[derive(serde::Deserialize)]
struct Note {}

impl Message for Note {
    const TYPE: &'static str = "test.Note";
}

#[tokio::test]
async fn two_hosts_share_stores_journal_clock_and_ids() {
    let journal: Arc<dyn TurnJournal> = Arc::new(InMemoryTurnJournal::default());
    let conversations: Arc<dyn ConversationMemory> = Arc::new(InMemoryConversationMemory::default());
    let log: Arc<dyn ConversationLog> = Arc::new(InMemoryConversationLog::new());
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let ids: Arc<dyn IdSource> = Arc::new(SequentialIds::new());
    let facts: Arc<dyn LongTermMemory> = Arc::new(InMemoryLongTermMemory::default());
    let notes: Arc<dyn WorkingMemory> = Arc::new(InMemoryWorkingMemory::new());
    let feedback: Arc<dyn FeedbackStore> = Arc::new(InMemoryFeedbackStore::new());
    let rules: Arc<dyn RulesStore> = Arc::new(InMemoryRulesStore::new());
    let skills: Arc<dyn SkillStore> = Arc::new(InMemorySkillStore::new());
    let uses: Arc<dyn SkillUsageStore> = Arc::new(InMemorySkillUsageStore::new());
    let media: Arc<dyn MediaStore> = Arc::new(InMemoryMediaStore::new());
    let host = |model: &ScriptedModel| {
        let stores = Stores::new()
            .with_journal(journal.clone())
            .with_conversation_memory(conversations.clone())
            .with_conversation_log(log.clone())
            .with_media(media.clone())
            .with_long_term_memory(facts.clone())
            .with_working_memory(notes.clone())
            .with_feedback(feedback.clone())
            .with_rules(rules.clone())
            .with_skills(skills.clone(), uses.clone());
        let host = AgentHost::builder("sharing").chat(model.clone()).stores(stores);
        host.clock(clock.clone()).ids(ids.clone()).build().unwrap()
    };
    let one = ScriptedModel::new().says("Ada.");
    let two = ScriptedModel::new().says("Still Ada.");
    let first = host(&one);
    let second = host(&two);
    let shown = Content::from("Who wrote it?").with_image(MediaPart::bytes("image/png", vec![1, 2, 3]));
    let outcome = first.agent().ask("s", shown).await.unwrap();
    let later = second.agent().ask("s", "And now?").await.unwrap();

    assert_ne!(outcome.turn, later.turn, "the ids come from one source");
    let texts: Vec<_> = two.requests()[0]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    let seen = two.requests()[0]
        .messages
        .iter()
        .find_map(|message| message.content.media().next().cloned());
    let bytes = MediaSource::Bytes(vec![1, 2, 3].into());
    assert_eq!(
        seen.unwrap().source,
        bytes,
        "the second host has the image that the first one stored"
    );
    assert!(
        texts.ends_with(&["Who wrote it?".into(), "Ada.".into(), "And now?".into()]),
        "{texts:?}"
    );
    let known = second.agent().outcome(&outcome.turn).await.unwrap();
    assert_eq!(known, outcome, "the journal is the same");
    let logged = log.read(&Principal::default(), "test", 10).await.unwrap();
    assert_eq!((logged.entries.len(), logged.next), (4, LogOffset(4)));
    assert!(logged.entries.iter().all(|entry| entry.timestamp == clock.now()));
}
