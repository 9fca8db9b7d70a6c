//! Hints on sixty messages, with four agents known.

use std::sync::{Arc, OnceLock};

use rockbot_core::recall::{ContextQuery, ContextSource as _};
use rockbot_core::service::KnownAgents;
use rockbot_core::tool::InMemoryToolRegistry;
use rockbot_core::{Principal, SessionId, TurnId};

use super::hints::ServiceHints;
use super::index::ServiceIndex;
use super::sources::Agents;

const AGENTS: &str = r#"[
    {"agentName": "SalesOpsAgent", "description": "Prepares reports about sales, revenue and leads from the CRM.",
     "skills": [{"id": "generate-qbr-report", "name": "Quarterly business review", "tags": ["quarterly", "revenue", "forecast"]},
                {"id": "audit-pipeline", "name": "Audit of the pipeline", "description": "Finds stale opportunities."}]},
    {"agentName": "TravelAgent", "description": "Plans business trips: flights, hotels and trains.",
     "skills": [{"id": "book-flight", "name": "Book a flight", "examples": ["Book me on the morning flight to Oslo."]},
                {"id": "find-hotel", "name": "Find a hotel"}, {"id": "travel-expenses", "name": "Travel expenses"}]},
    {"agentName": "ResearchAgent", "description": "Searches scientific literature and summarises papers.",
     "skills": [{"id": "literature-review", "name": "Literature review", "tags": ["papers", "citations"]},
                {"id": "patent-search", "name": "Patent search"}]},
    {"agentName": "HomeAgent", "description": "Controls the house: lights, heating, blinds, and the shopping list.",
     "skills": [{"id": "set-temperature", "name": "Set the temperature of a room"},
                {"id": "switch-lights", "name": "Switch lights"}, {"id": "shopping-list", "name": "Shopping list"}]}
]"#;

/// Messages that no agent is needed for.
const EVERYDAY: [&str; 30] = [
    "Who are you?",
    "What is 17 * 23?",
    "And times 2?",
    "What time is it?",
    "Remember that my cat is called Miso.",
    "What is the name of my cat?",
    "Good morning! How was your night?",
    "Tell me a joke about computers.",
    "Can you help me with something?",
    "Write a short poem about the sea.",
    "What is the capital of France?",
    "Translate 'good evening' into Italian.",
    "How do I boil an egg?",
    "Explain recursion to a child.",
    "What did I ask you yesterday?",
    "Find a better word for 'nice'.",
    "Set a reminder for tomorrow at nine, please.",
    "Please show me the list again.",
    "Summarise this text in two sentences: the meeting was long and nothing was decided.",
    "Is this sentence correct: 'He go to school'?",
    "Thanks, that was very helpful!",
    "How many days are there until Christmas?",
    "My sister has a new job in a bank.",
    "What do you think about the book that I am reading?",
    "I had a business lunch today and I am tired.",
    "Which is larger, a whale or an elephant?",
    "Give me ideas for a birthday present.",
    "I am in my room and cannot sleep.",
    "Can you set the table in your imagination?",
    "Let us talk about music.",
];

/// Messages with the agent that fits.
const FITTING: [(&str, &str); 30] = [
    ("Generate the QBR report for the third quarter.", "SalesOpsAgent"),
    ("How is our sales pipeline doing?", "SalesOpsAgent"),
    ("Audit the pipeline, please.", "SalesOpsAgent"),
    ("Make me a quarterly revenue forecast.", "SalesOpsAgent"),
    ("Which opportunities in the CRM are stale?", "SalesOpsAgent"),
    ("How many leads did the CRM get in May?", "SalesOpsAgent"),
    ("I need the quarterly business review by noon.", "SalesOpsAgent"),
    ("Prepare a report on revenue and leads.", "SalesOpsAgent"),
    ("Book a flight to Berlin on Tuesday.", "TravelAgent"),
    ("I need a hotel in Oslo for two nights.", "TravelAgent"),
    ("Are there trains or flights from Vienna to Graz?", "TravelAgent"),
    ("Submit my travel expenses for March.", "TravelAgent"),
    ("Find me a cheap hotel near the station.", "TravelAgent"),
    ("Plan my business trip to London: flight and hotel.", "TravelAgent"),
    ("Book the morning flight to Oslo.", "TravelAgent"),
    ("What did the travel to Rome cost?", "TravelAgent"),
    ("Do a literature review on sleep and memory.", "ResearchAgent"),
    ("Find papers about graphene batteries, with citations.", "ResearchAgent"),
    ("Search patents on foldable screens.", "ResearchAgent"),
    ("Summarise the scientific papers about microplastics.", "ResearchAgent"),
    ("Run a patent search for bicycle locks.", "ResearchAgent"),
    ("Which literature is there on urban bees?", "ResearchAgent"),
    ("Research the scientific literature on tinnitus.", "ResearchAgent"),
    ("Turn off the lights in the kitchen.", "HomeAgent"),
    ("Set the temperature of the bedroom to 19 degrees.", "HomeAgent"),
    ("Put milk on the shopping list.", "HomeAgent"),
    ("Switch the lights on in an hour.", "HomeAgent"),
    ("Close the blinds and turn the heating down.", "HomeAgent"),
    ("What is on my shopping list?", "HomeAgent"),
    ("Is the heating on in the house?", "HomeAgent"),
];

/// Returns the names of the agents that a message is shown with.
async fn hinted(hints: &ServiceHints, message: &str) -> Vec<String> {
    let query = ContextQuery::new(Principal::default(), SessionId::from("s"), TurnId::from("t"), message);
    let items = hints.gather(&query).await.unwrap();
    items
        .iter()
        .filter_map(|item| item.text.split(' ').next().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn hints_come_with_messages_about_the_agents_and_with_no_everyday_message() {
    let agents = KnownAgents::new(serde_json::from_str(AGENTS).unwrap()).unwrap();
    let index = ServiceIndex::new(
        vec![Arc::new(Agents {
            agents: Arc::new(agents),
            registry: Arc::new(InMemoryToolRegistry::default()),
        })],
        None,
    );
    let shared = Arc::new(OnceLock::new());
    shared.set(index).unwrap();
    let hints = ServiceHints::new(shared, true);

    let mut needless = Vec::new();
    for message in EVERYDAY {
        let shown = hinted(&hints, message).await;
        if !shown.is_empty() {
            needless.push((message, shown));
        }
    }
    assert_eq!(needless, []);
    let mut missed = Vec::new();
    for (message, agent) in FITTING {
        let shown = hinted(&hints, message).await;
        if shown != [agent] {
            missed.push((message, shown));
        }
    }
    assert!(missed.len() <= 3, "{missed:#?}");
}
