//! Work in the background: its results reach a session as messages, and what the agent says
//! unasked waits for a reader.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier};
use rockbot_core::messaging::Bus;
use rockbot_core::testing::{ManualClock, ScriptedModel, mock_tool};
use rockbot_core::tool::ToolError;
use rockbot_core::turn::{
    Announcement, BusyPolicy, InMemoryTurnJournal, Recipient, TurnProgress, TurnRequest, TurnRunner, TurnStatus,
};
use rockbot_core::user::UserProxy;
use rockbot_core::{Principal, TurnId};
use rockbot_host::bus::InProcessBus;
use rockbot_host::{Agent, AgentHost, AnnouncementStream, Stores};

use serde_json::json;

use crate::support::journal::{Counting, DatabaseAway, DiskFull};
use crate::support::{ending, host_of, noting_tool, settle, transcript};

/// Work in the background, in a session of its own, whose result goes to the session `main`.
fn work(name: &str) -> TurnRequest {
    TurnRequest::new(format!("work/{name}"), "start", format!("Do {name}."))
        .with_recipient(Recipient::new("main", name))
}

async fn started(agent: &Agent, request: TurnRequest) -> TurnId {
    let turn = request.turn_id();
    let running = agent.clone();
    tokio::spawn(async move { running.run(request).await });
    settle().await;
    turn
}

/// Returns the words of the next announcement.
async fn said(stream: &mut AnnouncementStream) -> String {
    stream.next().await.unwrap().content.words().into_owned()
}

/// A model that does work after a while, and says what it was told.
#[derive(Debug, Clone, Default)]
struct Worker {
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl ChatClient for Worker {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let last = call.request.messages.last().map(|message| message.text().into_owned());
        let last = last.unwrap_or_default();
        self.asked.lock().unwrap().push(last.clone());
        if let Some(name) = last.strip_prefix("Do ") {
            let seconds = name.trim_end_matches('.').parse().unwrap_or(0);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return Ok(ChatResponse::text(format!("{seconds} s of work")));
        }
        let users = call.request.messages.iter().map(|message| message.text().into_owned());
        let told = users.filter(|text| text.contains("background work")).count();
        Ok(ChatResponse::text(format!("{told} results")))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_turn_is_a_message_of_its_recipient_and_the_answer_is_announced() {
    let (look, mut handle) = mock_tool("look");
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .says("They purr with their larynx.")
        .says("Your question about cats: with their larynx.");
    let host = host_of(&model).tool(look.pure()).build().unwrap();
    let agent = host.agent();
    let turn = started(agent, work("cats")).await;
    let call = handle.next_call().await;
    call.fail(ToolError::execution_failed("no such page"));
    let announcement = agent.announcements().next().await.unwrap();
    let expected = Announcement::new("local", "main", "Your question about cats: with their larynx.");
    assert_eq!(
        (
            &announcement.principal,
            &announcement.session,
            &announcement.content,
            &announcement.results
        ),
        (&expected.principal, &expected.session, &expected.content, &vec![turn])
    );
    assert_eq!(
        transcript(&model.requests()[2])[1..],
        [
            "user: The background work \"cats\" is done. Its result:\nThey purr with their larynx.\n\nIts calls: \
             `look` 1 (1 failed). What failed is not done, whatever the result says. Tell the user the result in a short message of your own."
        ]
    );
    let answered = agent.outcome(&announcement.turn.unwrap()).await.unwrap();
    assert_eq!(
        ending(&answered),
        (&TurnStatus::Answered, "Your question about cats: with their larynx.")
    );
    let history = agent.history("main").await.unwrap();
    assert_eq!(history.len(), 2, "the message and its answer are in the conversation");
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn results_that_come_together_are_told_in_one_answer_which_names_the_rest() {
    let model = Worker::default();
    let host = AgentHost::in_memory().chat(model.clone()).build().unwrap();
    let agent = host.agent();
    for name in ["1", "2", "90"] {
        started(agent, work(name)).await;
    }
    let mut stream = agent.announcements();
    let first = stream.next().await.unwrap();
    assert_eq!((first.content.as_text(), first.results.len()), (Some("2 results"), 2));
    let second = stream.next().await.unwrap();
    assert_eq!((second.content.as_text(), second.results.len()), (Some("3 results"), 1));
    let asked = model.asked.lock().unwrap().join("\n---\n");
    assert!(asked.contains("Still running: 90."), "{asked}");
    assert_eq!(agent.history("main").await.unwrap().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_of_the_session_reads_the_result() {
    let (look, mut handle) = mock_tool("look");
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .says("larynx")
        .says("It rains, and cats purr with their larynx.");
    let host = host_of(&model).tool(look.pure()).build().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask("main", "How is the weather?").await }
    });
    let call = handle.next_call().await;
    started(&agent, work("cats")).await;
    call.respond("rain");
    let answer = asking.await.unwrap().unwrap();
    assert_eq!(answer.text, "It rains, and cats purr with their larynx.");
    let last = transcript(&model.requests()[2]);
    assert!(
        last.iter()
            .any(|line| line.contains("The background work \"cats\" is done")),
        "{last:?}"
    );
    settle().await;
    let mut stream = agent.announcements();
    let nothing = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
    assert!(nothing.is_err(), "the caller of the turn has the answer: {nothing:?}");
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_for_its_session_where_its_recipient_says_so() {
    let model = ScriptedModel::new().hangs().says("larynx");
    let host = host_of(&model).build().unwrap();
    let busy = host.agent().ask("main", "Think.").start().await.unwrap();
    let mut request = work("cats");
    request.recipient = Some(Recipient::new("main", "cats").with_busy(BusyPolicy::Queue));
    started(host.agent(), request).await;
    assert_eq!(model.requests().len(), 2);
    busy.cancel().await.unwrap();
    // The script is over, so the answer to the result fails, and the result is told as it is.
    let told = said(&mut host.agent().announcements()).await;
    assert!(told.ends_with("is done. Its result:\nlarynx"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_model_cannot_tell_is_told_as_it_is() {
    let model = ScriptedModel::new().says("larynx").fails(ChatErrorKind::Auth);
    let host = host_of(&model).build().unwrap();
    host.agent().run(work("cats")).await.unwrap();
    let told = said(&mut host.agent().announcements()).await;
    assert!(told.contains("larynx") && told.contains("cats"), "{told}");
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn work_that_was_cancelled_is_told_too() {
    let model = ScriptedModel::new().hangs().says("The work was cancelled.");
    let host = host_of(&model).build().unwrap();
    let turn = started(host.agent(), work("cats")).await;
    host.agent().cancel(&turn).await.unwrap();
    assert_eq!(said(&mut host.agent().announcements()).await, "The work was cancelled.");
    let told = transcript(&model.requests()[1]).remove(1);
    assert!(
        told.starts_with("user: The background work \"cats\" was cancelled:\n"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_message_that_asks_for_it_is_announced() {
    let host = host_of(&ScriptedModel::new().says("All is well.")).build().unwrap();
    let patrol = TurnRequest::new("patrol", "09:00", "Look around.").with_announced(true);
    host.agent().run(patrol).await.unwrap();
    let announcement = host.agent().announcements().next().await.unwrap();
    assert_eq!(announcement.session.as_str(), "patrol");
    assert_eq!(
        (announcement.content.as_text(), announcement.results),
        (Some("All is well."), Vec::new())
    );
}

/// Each write of the journal fails once, in a run of its own: the result is told once, whatever
/// happens.
#[tokio::test(start_paused = true)]
async fn a_result_is_told_once_whichever_write_of_the_journal_fails() {
    for write in 1..=12 {
        for away in [false, true] {
            let model = Worker::default();
            let inner = InMemoryTurnJournal::default();
            let stores = if away {
                Stores::new().with_journal(Counting::new(inner, DatabaseAway(write, 1)))
            } else {
                Stores::new().with_journal(Counting::new(inner, DiskFull(write, 1)))
            };
            let host = AgentHost::in_memory()
                .chat(model.clone())
                .stores(stores)
                .build()
                .unwrap();
            let agent = host.agent();
            let ended = agent.run(work("1")).await;
            if write == 1 {
                assert!(ended.is_err(), "the work is not accepted");
                continue;
            }
            let mut stream = agent.announcements();
            let told = said(&mut stream).await;
            let as_it_is = told.ends_with("The background work \"1\" is done. Its result:\n1 s of work");
            assert!(told == "1 results" || (!away && as_it_is), "write {write}: {told}");
            let more = tokio::time::timeout(Duration::from_secs(600), stream.next()).await;
            assert!(more.is_err(), "write {write}: {more:?}");
            let told = agent.history("main").await.unwrap().len();
            assert_eq!(told, if as_it_is { 0 } else { 2 }, "write {write}");
        }
    }
}

fn kept(folder: &Path, model: &ScriptedModel) -> AgentHost {
    host_of(model).data_dir(folder).build().unwrap()
}

#[tokio::test]
async fn announcements_wait_for_a_reader_over_a_restart_and_are_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let host = kept(
        folder.path(),
        &ScriptedModel::new().says("larynx").says("With their larynx."),
    );
    host.agent().run(work("cats")).await.unwrap();
    while !host.agent().is_idle() {
        tokio::task::yield_now().await;
    }
    host.agent().announce("main", "The backup is done.").await.unwrap();
    host.agent()
        .for_principal("ann")
        .announce("main", "For Ann.")
        .await
        .unwrap();
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    let host = kept(folder.path(), &ScriptedModel::new());
    host.start().await.unwrap();
    let mut stream = host.agent().announcements();
    assert_eq!(said(&mut stream).await, "With their larynx.");
    assert_eq!(said(&mut stream).await, "The backup is done.");
    // Asked for the next one, the program has dealt with this one.
    assert!(
        tokio::time::timeout(Duration::from_millis(20), stream.next())
            .await
            .is_err()
    );
    let mut anns = host.agent().for_principal("ann").announcements();
    assert_eq!(said(&mut anns).await, "For Ann.");
    host.shutdown(Duration::from_secs(5)).await;
    assert_eq!(stream.next().await, None);
    drop((host, stream, anns));

    let host = kept(folder.path(), &ScriptedModel::new());
    host.start().await.unwrap();
    let mut anns = host.agent().for_principal("ann").announcements();
    assert_eq!(said(&mut anns).await, "For Ann.", "it was not dealt with");
    let mut stream = host.agent().announcements();
    assert!(
        tokio::time::timeout(Duration::from_millis(20), stream.next())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn each_of_several_readers_gets_other_announcements_and_none_is_lost() {
    let host = host_of(&ScriptedModel::new()).build().unwrap();
    let agent = host.agent();
    let mut first = agent.announcements();
    let mut second = agent.announcements();
    for number in ["1", "2", "3"] {
        agent.announce("main", number).await.unwrap();
    }
    assert_eq!(
        (said(&mut first).await, said(&mut second).await),
        ("1".into(), "2".into())
    );
    // Asked for and not waited for: dropped, it goes back.
    let asked = tokio::time::timeout(Duration::ZERO, first.next()).await;
    drop(first);
    settle().await;
    let rest = [said(&mut second).await];
    let taken_by_first = asked.is_ok();
    assert!(!taken_by_first || rest == ["3"], "{rest:?}");
    assert!(["1", "3"].contains(&&*rest[0]));
}

#[tokio::test(start_paused = true)]
async fn old_announcements_and_too_many_are_dropped() {
    let clock = ManualClock::default();
    let host = host_of(&ScriptedModel::new()).clock(clock.clone()).build().unwrap();
    let agent = host.agent();
    for number in 0..1002 {
        agent.announce("main", number.to_string()).await.unwrap();
    }
    let mut stream = agent.announcements();
    assert_eq!(said(&mut stream).await, "2", "the two oldest made room");
    clock.advance(Duration::from_secs(7 * 24 * 3600 + 1));
    agent.announce("main", "fresh").await.unwrap();
    assert_eq!(said(&mut stream).await, "fresh");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_person_without_a_caller_asks_by_an_announcement() {
    let model = ScriptedModel::new()
        .calls("pay", json!({"n": 7}))
        .says("paid")
        .says("It is paid.");
    let (pay, paid) = noting_tool("pay");
    let host = host_of(&model).tool(pay.needs_approval()).build().unwrap();
    let agent = host.agent();
    let runner = host.parts().get::<dyn rockbot_core::turn::TurnRunner>().unwrap();
    let turn = runner.start(work("bill")).await.unwrap();
    let mut stream = agent.announcements();
    let asked = stream.next().await.unwrap();
    let expected = "The background work \"bill\" asks: may I call pay with {\"n\":7}?";
    assert_eq!(
        (asked.session.as_str(), asked.content.as_text()),
        ("main", Some(expected))
    );
    let approval = asked.approval.unwrap();
    assert_eq!((&approval.turn, &agent.approvals()[0]), (&turn, &approval));
    agent.decide(approval.approve()).await.unwrap();
    assert_eq!(said(&mut stream).await, "It is paid.");
    assert_eq!(paid.all(), ["pay 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_decided_is_not_asked_any_more_and_one_with_a_caller_is_not_announced() {
    let model = ScriptedModel::new().calls("pay", json!({})).calls("pay", json!({}));
    let (pay, _) = noting_tool("pay");
    let host = host_of(&model).tool(pay.needs_approval()).build().unwrap();
    let agent = host.agent();
    let turn = agent.ask("a", "Pay.").start().await.unwrap();
    settle().await;
    agent.cancel(turn.id()).await.unwrap();
    let mut watched = agent.ask("b", "Pay.").stream();
    while let Some(report) = watched.next().await {
        if matches!(report.unwrap(), TurnProgress::ApprovalNeeded(_)) {
            break;
        }
    }
    let mut stream = agent.announcements();
    assert!(
        tokio::time::timeout(Duration::from_secs(60), stream.next())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn an_announcement_waits_for_an_interface_on_the_bus() {
    let bus = InProcessBus::new();
    let host = AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .serve_users()
        .build()
        .unwrap();
    host.start().await.unwrap();
    let ann = host.agent().for_principal("ann");
    ann.announce("main", "The backup is done.").await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let shared: Arc<dyn Bus> = Arc::new(bus.clone());
    let others = UserProxy::new(shared.clone(), "other").with_user_id("bob");
    let never = others
        .on_announcement(|said| panic!("bob hears {said:?}"))
        .await
        .unwrap();
    let proxy = UserProxy::new(shared, "terminal").with_user_id("ann");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = heard.clone();
    let listening = proxy
        .on_announcement(move |said| hearing.lock().unwrap().push(said))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    // A program of the same process that listens has precedence.
    let mut stream = ann.announcements();
    ann.announce("main", "Here.").await.unwrap();
    assert_eq!(said(&mut stream).await, "Here.");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let heard = heard.lock().unwrap().clone();
    let told: Vec<_> = heard
        .iter()
        .map(|said| (&said.principal, said.session.as_str(), said.content.as_text()))
        .collect();
    assert_eq!(told, [(&Principal::from("ann"), "main", Some("The backup is done."))]);
    assert_eq!(proxy.stray_replies(), 0);
    drop((listening, never));
    host.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn an_inbox_shows_announcements_until_they_are_dismissed_and_the_bus_has_none_meanwhile() {
    let bus = InProcessBus::new();
    let host = AgentHost::builder("clerk")
        .chat(ScriptedModel::new())
        .bus(bus.clone())
        .serve_users()
        .build()
        .unwrap();
    host.start().await.unwrap();
    let proxy = UserProxy::new(Arc::new(bus), "terminal").with_user_id("ann");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = heard.clone();
    let listening = proxy
        .on_announcement(move |said| hearing.lock().unwrap().push(said.content.text().into_owned()))
        .await
        .unwrap();
    let turns = host.parts().require::<dyn TurnRunner>().unwrap();
    let mut inbox = turns.inbox(&"ann".into()).unwrap();
    let ann = host.agent().for_principal("ann");
    for text in ["one", "two"] {
        ann.announce("main", text).await.unwrap();
    }
    inbox.changed().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let ids = inbox.ids();
    assert_eq!(ids.len(), 2);
    for (id, text) in ids.iter().zip(["one", "two"]) {
        assert_eq!(inbox.read(id).await.unwrap().unwrap().content, text);
    }
    let of_bob = turns.inbox(&"bob".into()).unwrap();
    assert_eq!(of_bob.read(&ids[0]).await.unwrap(), None);
    assert!(!of_bob.dismiss(&ids[0]).await.unwrap());
    assert!(inbox.dismiss(&ids[0]).await.unwrap());
    assert!(!inbox.dismiss(&ids[0]).await.unwrap());
    assert_eq!(
        (inbox.ids(), inbox.read(&ids[0]).await.unwrap()),
        (vec![ids[1].clone()], None)
    );
    assert!(heard.lock().unwrap().is_empty());
    // The principal has no reader any more.
    drop(inbox);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(*heard.lock().unwrap(), ["two"]);
    drop((listening, of_bob, turns));
    host.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_decided_is_in_no_inbox() {
    let model = ScriptedModel::new().calls("pay", json!({"n": 1})).says("paid");
    let host = host_of(&model)
        .tool(noting_tool("pay").0.needs_approval())
        .build()
        .unwrap();
    let agent = host.agent();
    let turn = agent.ask("s", "Pay.").start().await.unwrap();
    let turns = host.parts().require::<dyn TurnRunner>().unwrap();
    let mut inbox = turns.inbox(&Principal::default()).unwrap();
    while inbox.ids().is_empty() {
        inbox.changed().await;
    }
    let id = inbox.ids().remove(0);
    let asked = inbox.read(&id).await.unwrap().unwrap();
    agent.decide(asked.approval.unwrap().approve()).await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().text, "paid");
    assert_eq!(inbox.read(&id).await.unwrap(), None);
    assert!(inbox.ids().is_empty());
}
