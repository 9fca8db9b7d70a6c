//! Agents whose turns and memory are in PostgreSQL, as several processes would share it.

mod copied;
#[cfg(all(feature = "rabbitmq", unix))]
mod killed;
mod schedules;
mod together;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use rockbot::memory::Memory;
use rockbot::store::{Postgres, PostgresOptions};
use rockbot_core::chat::Provenance;
use rockbot_core::content::{Content, MediaPart, MediaSource};
use rockbot_core::embedding::EmbeddingClient as _;
use rockbot_core::store::{
    FeedbackStore, LongTermMemory, MemoryEntry, Rule, RulesStore, VectorCache as _, WorkingMemory,
};
use rockbot_core::testing::{HashedEmbeddings, ScriptedModel};
use rockbot_core::turn::{TurnRequest, TurnStatus};
use rockbot_core::{Digest, IdSource as _, Principal, RandomIds, Timestamp};
use rockbot_host::{AgentHost, AgentHostBuilder};
use serde_json::json;
use tokio_postgres::NoTls;

use self::together::until;
use crate::support::{Notes, ending, noting_tool, transcript};

/// A schema of a test, which is dropped at its end.
struct Schema {
    url: String,
    name: String,
}

/// Runs a test over a schema of its own. Without a server the test is skipped.
async fn with_schema(test: impl AsyncFnOnce(&Schema)) {
    let url = std::env::var("ROCKBOT_TEST_POSTGRES");
    let url = url.unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/test".to_owned());
    let (client, connection) = match tokio_postgres::connect(&url, NoTls).await {
        Ok(connected) => connected,
        Err(error) => {
            let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
            assert!(!is_required, "{error}");
            return println!("SKIPPED: no PostgreSQL answers: {error}");
        }
    };
    tokio::spawn(connection);
    let name = format!("test_{}", RandomIds.next_id());
    let schema = Schema { url, name };
    let ended = AssertUnwindSafe(test(&schema)).catch_unwind().await;
    let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", schema.name);
    client.batch_execute(&drop).await.unwrap();
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

impl Schema {
    async fn connect(&self) -> Postgres {
        let options = PostgresOptions::default()
            .with_schema(&*self.name)
            .with_lease(Duration::from_secs(3))
            .with_max_connections(4);
        Postgres::connect_with(&self.url, options).await.unwrap()
    }

    /// Returns the builder of an agent as each process has it: with a tool `pay` that needs approval,
    /// and what it paid.
    async fn process(&self, agent: &str, model: &ScriptedModel) -> (AgentHostBuilder, Notes) {
        let (pay, paid) = noting_tool("pay");
        let builder = AgentHost::builder(agent)
            .chat(model.clone())
            .instructions("You are an agent.");
        (builder.tool(pay.needs_approval()).add(self.connect().await), paid)
    }
}

fn me() -> Principal {
    Principal::default()
}

#[tokio::test]
async fn another_process_goes_on_with_a_turn_and_its_conversation() {
    with_schema(async |schema| {
        let (first, _) = schema
            .process(
                "clerk",
                &ScriptedModel::new().says("Hello, Ada.").calls("pay", json!({"n": 7})),
            )
            .await;
        let first = first.build().unwrap();
        first.agent().ask("s", "I am Ada.").await.unwrap();
        let parked = first.agent().run(TurnRequest::new("s", "m", "Pay 7.")).await.unwrap();
        let TurnStatus::Parked(asks) = parked.status.clone() else {
            panic!("the turn should wait, got {parked:?}")
        };
        drop(first);

        let model = ScriptedModel::new().says("Paid.").says("Ada.");
        let (second, paid) = schema.process("clerk", &model).await;
        let second = second.build().unwrap();
        second.start().await.unwrap();
        assert_eq!(second.agent().approvals(), asks);
        second.agent().decide(asks[0].approve()).await.unwrap();
        let outcome = second.agent().outcome(&parked.turn).await.unwrap();
        assert_eq!(ending(&outcome), (&TurnStatus::Answered, "Paid."));
        assert_eq!(paid.all(), ["pay 7"]);
        second.agent().ask("s", "Who am I?").await.unwrap();
        let shown = transcript(&model.requests()[1]);
        assert!(
            shown.contains(&"user: I am Ada.".to_owned()) && shown.contains(&"assistant: Paid.".to_owned()),
            "{shown:?}"
        );

        // The same message in a third process is the same turn, and asks no model.
        let (third, _) = schema.process("clerk", &ScriptedModel::new()).await;
        let third = third.build().unwrap();
        let again = third.agent().run(TurnRequest::new("s", "m", "Pay 7.")).await.unwrap();
        assert_eq!((again.turn, &*again.text), (parked.turn, "Paid."));
    })
    .await;
}

#[tokio::test]
async fn agents_of_two_names_share_a_database_and_no_turns() {
    with_schema(async |schema| {
        let (clerk, _) = schema
            .process("clerk", &ScriptedModel::new().calls("pay", json!({"n": 1})))
            .await;
        let clerk = clerk.build().unwrap();
        clerk.agent().run(TurnRequest::new("s", "m", "Pay.")).await.unwrap();
        let (cook, _) = schema.process("cook", &ScriptedModel::new().says("I cook.")).await;
        let cook = cook.build().unwrap();
        cook.start().await.unwrap();
        assert!(cook.agent().approvals().is_empty());
        let outcome = cook.agent().run(TurnRequest::new("s", "m", "Pay.")).await.unwrap();
        assert_eq!(outcome.text, "I cook.");
    })
    .await;
}

#[tokio::test]
async fn memory_takes_the_stores_in_whatever_order_the_parts_are_added() {
    with_schema(async |schema| {
        let stores = schema.connect().await;
        stores
            .rules
            .add(&me(), Rule::new("Answer in French.").unwrap())
            .await
            .unwrap();
        let hosts = [
            AgentHost::in_memory()
                .add(Memory::default())
                .add(schema.connect().await),
            AgentHost::in_memory()
                .add(schema.connect().await)
                .add(Memory::default()),
        ];
        for host in hosts {
            let model = ScriptedModel::new().says("Oui.");
            let host = host.chat(model.clone()).build().unwrap();
            host.agent().ask("s", "Hello").await.unwrap();
            let shown = transcript(&model.requests()[0]).join("\n");
            assert!(shown.contains("Answer in French."), "{shown}");
            assert!(
                host.parts().get::<dyn WorkingMemory>().is_some() && host.parts().get::<dyn FeedbackStore>().is_some()
            );
            assert_eq!(
                host.parts()
                    .get::<dyn RulesStore>()
                    .unwrap()
                    .list(&me())
                    .await
                    .unwrap()
                    .len(),
                1
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_one_process_learned_and_was_shown_another_one_knows() {
    with_schema(async |schema| {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let process = async |n: usize, model: &ScriptedModel| {
            let builder = AgentHost::builder("clerk")
                .chat(model.clone())
                .instructions("Be brief.");
            let builder = builder.data_dir(folders[n].path()).add(Memory::default());
            builder.add(schema.connect().await).build().unwrap()
        };
        let first = ScriptedModel::new()
            .calls("save_memory", json!({"content": "The cat is called Miso."}))
            .says("I see it.");
        let first = process(0, &first).await;
        let cat = MediaPart::bytes("image/png", vec![1, 2, 3]);
        let message = Content::from("This is my cat Miso.").with_image(cat);
        first.agent().ask("s", message).await.unwrap();
        let stored = first.parts().require::<dyn LongTermMemory>().unwrap();
        while stored.list(&me()).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }

        let model = ScriptedModel::new().says("Miso.").says("Black.");
        let second = process(1, &model).await;
        second.agent().ask("other", "What is my cat called?").await.unwrap();
        second.agent().ask("s", "Which colour has it?").await.unwrap();
        let requests = model.requests();
        let shown = transcript(&requests[0]).join("\n");
        assert!(shown.contains("The cat is called Miso."), "{shown}");
        let images = requests[1].messages.iter().flat_map(|message| message.content.media());
        let images: Vec<_> = images.map(|image| image.source.clone()).collect();
        assert!(
            matches!(&images[..], [MediaSource::Bytes(bytes)] if bytes[..] == [1, 2, 3]),
            "{images:?}"
        );
        for folder in ["memory", "media"] {
            assert!(!folders[0].path().join(folder).exists(), "{folder} is in the database");
        }
    })
    .await;
}

#[tokio::test]
async fn a_memory_is_embedded_by_one_process_for_all() {
    with_schema(async |schema| {
        let clients = [(); 2].map(|()| HashedEmbeddings::new().same("cat", "pet").same("called", "named"));
        let process = async |n: usize, model: &ScriptedModel| {
            let memory = Memory::default().embeddings(clients[n].clone());
            let host = AgentHost::in_memory().chat(model.clone()).add(memory);
            let host = host.add(schema.connect().await).build().unwrap();
            host.start().await.unwrap();
            host
        };
        let first = process(0, &ScriptedModel::new()).await;
        let stores = schema.connect().await;
        let cat = "The cat is called Miso.";
        let entry = MemoryEntry::new("cat", cat, Timestamp::default(), Provenance::USER);
        stores.long_term.save(&me(), entry).await.unwrap();
        // A search finds the memory of another process, which then gets its vector.
        first.agent().ask("s", "How is my pet named?").await.unwrap_err();
        until(async || !clients[0].texts().is_empty() && clients[0].texts().contains(&cat.to_owned())).await;
        let filed = async || {
            let digest = Digest::of([clients[0].model(), cat]);
            stores.vectors.load(&me(), &[digest]).await.unwrap().len() == 1
        };
        until(filed).await;

        let model = ScriptedModel::new().says("Miso.");
        let second = process(1, &model).await;
        second.agent().ask("s", "How is my pet named?").await.unwrap();
        let shown = transcript(&model.requests()[0]).join("\n");
        assert!(shown.contains(cat), "{shown}");
        assert!(
            !clients[1].texts().contains(&cat.to_owned()),
            "{:?}",
            clients[1].texts()
        );
    })
    .await;
}
