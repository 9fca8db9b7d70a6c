//! Turn layers: they wrap the work of every turn, resumed and approved ones too, and what they
//! change is remembered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rockbot_core::messaging::{Bus, Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::turn::{BusyPolicy, ProgressSink, TurnOutcome, TurnProgress, TurnRequest, TurnStatus};
use rockbot_core::user::{AgentReply, UserMessage};
use rockbot_core::{BoxError, TurnId};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{AgentHost, AgentHostBuilder, FnLayer, Next, TurnCall, TurnError, turn_fn};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Notes, host_of, noting_tool, settle, transcript};

const SECOND: Duration = Duration::from_secs(1);

type Turns = Next<TurnCall, TurnOutcome>;
type Ended = Result<TurnOutcome, BoxError>;

/// Appends a word to what was asked, and a word to what was answered.
fn words(
    asked: &'static str,
    answered: &'static str,
) -> FnLayer<impl Fn(TurnCall, Turns) -> BoxFuture<'static, Ended>> {
    turn_fn(move |mut call, next| {
        async move {
            call.request.content.push_str(asked);
            let mut outcome = next.call(call).await?;
            outcome.text.push_str(answered);
            Ok(outcome)
        }
        .boxed()
    })
}

fn in_folder(folder: &TempDir, model: &ScriptedModel) -> AgentHostBuilder {
    AgentHost::builder("clerk").chat(model.clone()).data_dir(folder.path())
}

/// The messages of a request behind the system prompt.
fn said(model: &ScriptedModel, request: usize) -> Vec<String> {
    transcript(&model.requests()[request])[1..].to_vec()
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_changes_is_what_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says("Hello").says("Fine");
    let host = in_folder(&folder, &model)
        .turn_layer(words(" please", ", sir"))
        .build()
        .unwrap();
    let request = host.agent().request("s", "Hi");
    let first = host.agent().run(request.clone()).await.unwrap();
    assert_eq!(first.text, "Hello, sir");
    assert_eq!(host.agent().run(request.clone()).await.unwrap(), first);
    host.agent().ask("s", "Well?").await.unwrap();
    let expected = ["user: Hi please", "assistant: Hello, sir", "user: Well? please"];
    assert_eq!(said(&model, 1), expected);
    drop(host);

    let host = in_folder(&folder, &ScriptedModel::new()).build().unwrap();
    assert_eq!(
        host.agent().run(request).await.unwrap(),
        first,
        "the journal has it, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resumed_turn_passes_the_layers_and_keeps_the_request_that_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().hangs();
    let host = in_folder(&folder, &model)
        .turn_layer(words(" first", ""))
        .build()
        .unwrap();
    let agent = host.agent().clone();
    let request = agent.request("s", "Go");
    let turn = request.turn_id();
    let asking = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    host.shutdown(SECOND).await;
    assert!(matches!(asking.await.unwrap(), Err(TurnError::Halted)));
    drop(host);

    let model = ScriptedModel::new().says("Done").says("Yes");
    let seen = Notes::default();
    let notes = seen.clone();
    let noting = turn_fn(move |call: TurnCall, next: Turns| {
        notes.add(call.request.content.to_string());
        next.call(call)
    });
    let host = in_folder(&folder, &model)
        .turn_layer(noting)
        .turn_layer(words(" second", ", resumed"))
        .build()
        .unwrap();
    assert_eq!(host.start().await.unwrap().running, std::slice::from_ref(&turn));
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "Done, resumed");
    host.agent().ask("s", "Again").await.unwrap();
    assert_eq!(said(&model, 0), ["user: Go first"]);
    let expected = ["user: Go first", "assistant: Done, resumed", "user: Again second"];
    assert_eq!(said(&model, 1), expected);
    assert_eq!(seen.all(), ["Go first", "Again"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_person_passes_the_layers_before_and_after() {
    let (pay, paid) = noting_tool("pay");
    let model = ScriptedModel::new()
        .calls("pay", json!({"n": 7}))
        .says("Paid")
        .says("Yes");
    let seen = Notes::default();
    let notes = seen.clone();
    let noting = turn_fn(move |call: TurnCall, next: Turns| {
        let notes = notes.clone();
        async move {
            let outcome = next.call(call).await?;
            notes.add(if outcome.is_final() { "ended" } else { "parked" }.to_owned());
            Ok(outcome)
        }
    });
    let host = host_of(&model)
        .tool(pay.needs_approval())
        .turn_layer(noting)
        .turn_layer(words("", ", sir"))
        .build()
        .unwrap();
    let request = host.agent().request("s", "Pay");
    let turn = request.turn_id();
    let parked = host.agent().run(request).await.unwrap();
    assert!(
        matches!(parked.status, TurnStatus::Parked(_)) && parked.text.ends_with(", sir"),
        "{parked:?}"
    );
    let asks = host.agent().approvals();
    host.agent().decide(asks[0].approve()).await.unwrap();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "Paid, sir");
    assert_eq!(
        (seen.all(), paid.all().len()),
        (vec!["parked".to_owned(), "ended".to_owned()], 1)
    );
    host.agent().ask("s", "And?").await.unwrap();
    assert!(said(&model, 2).contains(&"assistant: Paid, sir".to_owned()));
}

/// A bus with a listener to the topic `desk`.
async fn desk() -> (InProcessBus, Notes, impl Sized) {
    let bus = InProcessBus::new();
    let replies = Notes::default();
    let notes = replies.clone();
    let listener = move |delivery: Delivery| {
        let reply: AgentReply = delivery.envelope.payload().unwrap();
        let about = delivery.envelope.correlation_id.clone().unwrap_or_default();
        notes.add(format!("{about}: {}", reply.content));
        async { Disposition::Ack }
    };
    let listening = bus.on("desk", "desk", listener).await.unwrap();
    (bus, replies, listening)
}

async fn send(bus: &InProcessBus, id: &str, about: &str) {
    let message = MessageEnvelope::of(&UserMessage::new("s", "Hi")).unwrap();
    let message = message.with_id(id).with_source("shop").with_reply_to("desk");
    let message = message.with_correlation_id(about);
    bus.publish("user.message", Arc::new(message)).await.unwrap();
    sleep(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_redelivered_message_gets_the_reply_that_the_layers_made() {
    let folder = tempfile::tempdir().unwrap();
    let (bus, replies, _listening) = desk().await;
    let serving = |model: &ScriptedModel| {
        let shared: Arc<dyn Bus> = Arc::new(bus.clone());
        in_folder(&folder, model)
            .bus(bus.clone())
            .shared_bus(shared)
            .serve_users()
    };
    let layered = serving(&ScriptedModel::new().says("Hello"));
    let host = layered.turn_layer(words("", ", sir")).build().unwrap();
    host.start().await.unwrap();
    send(&bus, "1", "first").await;
    send(&bus, "1", "again").await;
    host.shutdown(SECOND).await;
    drop(host);

    let host = serving(&ScriptedModel::new()).build().unwrap();
    host.start().await.unwrap();
    send(&bus, "1", "after the restart").await;
    let expected = ["first", "again", "after the restart"].map(|about| format!("{about}: Hello, sir"));
    assert_eq!(replies.all(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_a_layer_is_remembered_and_the_model_is_not_asked() {
    let model = ScriptedModel::new().says("Yes");
    let greeting = turn_fn(|call: TurnCall, next: Turns| async move {
        match call.request.content.text().as_ref() {
            "Hi" => Ok(TurnOutcome::new("another id".into(), TurnStatus::Answered, "Hello")),
            _ => next.call(call).await,
        }
    });
    let host = host_of(&model).turn_layer(greeting).build().unwrap();
    let request = host.agent().request("s", "Hi");
    let greeted = host.agent().run(request.clone()).await.unwrap();
    assert_eq!(
        greeted,
        TurnOutcome::new(request.turn_id(), TurnStatus::Answered, "Hello")
    );
    host.agent().ask("s", "Well?").await.unwrap();
    assert_eq!(said(&model, 0), ["user: Hi", "assistant: Hello", "user: Well?"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_layer_withheld_is_not_remembered() {
    let model = ScriptedModel::new().says("The PIN is 1234").says("Yes");
    let failing = turn_fn(|call: TurnCall, next: Turns| async move {
        let is_secret = call.request.content == "The PIN?";
        let outcome = next.call(call).await?;
        if is_secret {
            Err("the censor is ill".into())
        } else {
            Ok(outcome)
        }
    });
    let host = host_of(&model).turn_layer(failing).build().unwrap();
    let request = host.agent().request("s", "The PIN?");
    let turn = request.turn_id();
    let refused = host.agent().run(request).await.unwrap_err();
    assert_eq!(refused.to_string(), "a turn layer failed: the censor is ill");
    let text = "This message could not be answered: a turn layer failed: the censor is ill.";
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, text);
    host.agent().ask("s", "Well?").await.unwrap();
    assert_eq!(said(&model, 1), ["user: Well?"]);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_no_longer_waits_cancels_the_turn_and_a_running_call_is_awaited() {
    let model = ScriptedModel::new()
        .calls("work", json!({}))
        .says("too late")
        .says("Yes");
    let (work, mut handle) = mock_tool("work");
    let impatient = turn_fn(|call: TurnCall, next: Turns| async move {
        let turn = call.request.turn_id();
        match timeout(SECOND, next.call(call)).await {
            Ok(ended) => ended,
            Err(_) => Ok(TurnOutcome::new(turn, TurnStatus::Answered, "Later.")),
        }
    });
    let host = host_of(&model).tool(work).turn_layer(impatient).build().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "Work").await });
    let call = handle.next_call().await;
    sleep(2 * SECOND).await;
    assert!(!asking.is_finished(), "the call may have an effect");
    call.respond("done");
    assert_eq!(asking.await.unwrap().unwrap().text, "Later.");
    host.agent().ask("s", "And?").await.unwrap();
    assert_eq!(said(&model, 1), ["user: Work", "assistant: Later.", "user: And?"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_layer_holds_it_back_can_be_cancelled_and_outlives_its_process() {
    let holding = || turn_fn(|_: TurnCall, _: Turns| std::future::pending::<Ended>());
    let folder = tempfile::tempdir().unwrap();
    let begun = async |host: &AgentHost| -> TurnId {
        let (agent, request) = (host.agent().clone(), host.agent().request("s", "Go"));
        let turn = request.turn_id();
        tokio::spawn(async move { agent.run(request).await });
        settle().await;
        turn
    };
    let host = in_folder(&folder, &ScriptedModel::new())
        .turn_layer(holding())
        .build()
        .unwrap();
    let turn = begun(&host).await;
    host.agent().cancel(&turn).await.unwrap();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().status, TurnStatus::Cancelled);
    let turn = begun(&host).await;
    let began = Instant::now();
    host.shutdown(60 * SECOND).await;
    assert!(began.elapsed() < SECOND);
    drop(host);

    let host = in_folder(&folder, &ScriptedModel::new().says("Done")).build().unwrap();
    host.start().await.unwrap();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "Done");
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_hangs_after_the_end_holds_its_caller_for_two_minutes() {
    let hanging = turn_fn(|call: TurnCall, next: Turns| async move {
        next.call(call).await?;
        std::future::pending::<Ended>().await
    });
    let host = host_of(&ScriptedModel::new().says("Hello"))
        .turn_layer(hanging)
        .build()
        .unwrap();
    let began = Instant::now();
    let late = host.agent().ask("s", "Hi").await.unwrap_err();
    assert!(matches!(late, TurnError::LayerTimedOut), "{late:?}");
    assert_eq!(began.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn the_work_of_a_turn_is_for_its_own_message_alone() {
    let model = ScriptedModel::new().says("Hello");
    let rerouting = turn_fn(|mut call: TurnCall, next: Turns| async move {
        call.request.session = "another".into();
        next.call(call).await
    });
    let host = host_of(&model).turn_layer(rerouting).build().unwrap();
    let request = host.agent().request("s", "Hi");
    let mut other = request.clone();
    other.session = "another".into();
    let other = other.turn_id();
    let refused = host.agent().run(request).await.unwrap_err();
    assert!(
        matches!(&refused, TurnError::OtherTurn(turn) if *turn == other),
        "{refused:?}"
    );
    assert!(model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_listen_to_the_reports_of_a_turn() {
    let (look, _) = noting_tool("look");
    let model = ScriptedModel::new().calls("look", json!({})).says("Seen");
    let seen = Notes::default();
    let notes = seen.clone();
    let listening = turn_fn(move |mut call: TurnCall, next: Turns| {
        let notes = notes.clone();
        let outer = call.progress.clone();
        call.progress = ProgressSink::new(move |progress| {
            if let TurnProgress::ToolStarted { tool, .. } = &progress {
                notes.add(format!("started {tool}"));
            }
            outer.send(|| progress);
        });
        next.call(call)
    });
    let host = host_of(&model).tool(look).turn_layer(listening).build().unwrap();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = reports.clone();
    let sink = ProgressSink::new(move |progress| sink.lock().unwrap().push(progress));
    let request = host.agent().request("s", "Hi");
    let outcome = host.turns().call(TurnCall::new(request, sink)).await.unwrap();
    assert_eq!(seen.all(), ["started look"]);
    let reports = reports.lock().unwrap();
    let finals = reports.iter().filter(|report| matches!(report, TurnProgress::Final(_)));
    assert_eq!(finals.count(), 1);
    assert_eq!(reports.last(), Some(&TurnProgress::Final(outcome)));
    assert!(matches!(reports[0], TurnProgress::ToolStarted { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_joins_a_turn_gets_what_the_layers_made_of_that_turn() {
    let model = ScriptedModel::new().calls("work", json!({})).says("Both");
    let (work, mut handle) = mock_tool("work");
    let host = host_of(&model)
        .tool(work.pure())
        .turn_layer(words("", ", sir"))
        .build()
        .unwrap();
    let steering = |text| host.agent().request("s", text).with_busy(BusyPolicy::Steer);
    let run = |request| {
        let agent = host.agent().clone();
        tokio::spawn(async move { agent.run(request).await.unwrap().text })
    };
    let first = run(steering("one"));
    let call = handle.next_call().await;
    let second = run(steering("two"));
    settle().await;
    call.respond("done");
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        ("Both, sir".to_owned(), "Both, sir".to_owned())
    );
}

#[tokio::test]
async fn a_layer_that_fails_tells_the_sender_no_path() {
    let cause = || std::io::Error::other("/srv/agent/state.db is locked");
    for hidden in [
        Box::new(cause()) as BoxError,
        "cannot open /srv/agent/state.db".into(),
        "it broke\n  at src/main.rs:7".into(),
    ] {
        let hidden = Arc::new(Mutex::new(Some(hidden)));
        let fails = turn_fn(move |_: TurnCall, _| {
            let error = hidden.lock().unwrap().take().unwrap();
            async move { Err::<TurnOutcome, BoxError>(error) }
        });
        let host = host_of(&ScriptedModel::new()).turn_layer(fails).build().unwrap();
        let request = TurnRequest::new("s", "m", "hi");
        // The program gets the error itself, and who wrote the message a reference.
        let told = host.agent().run(request.clone()).await.unwrap_err();
        assert!(
            told.to_string().contains("agent") || told.to_string().contains("main.rs"),
            "{told}"
        );
        let reply = host.agent().outcome(&request.turn_id()).await.unwrap().text;
        assert!(reply.contains("under the reference"), "{reply}");
        assert!(!reply.contains("srv") && !reply.contains("main.rs"), "{reply}");
    }
}
