//! A storm of kills under load: many messages at once, and a process that is killed again and
//! again at any moment.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use rockbot::memory::Memory;
use rockbot_core::turn::TurnRequest;
use rockbot_host::{AgentHost, AgentHostBuilder};

use crate::crash::{PLAN, Planner, World};
use crate::support::kill::{acknowledge, begin, finish, kill_within, ready};

/// Messages that come with each process.
const MESSAGES: usize = 8;

/// Time within which a process is killed. A turn that is interrupted four times is given up, so
/// some must get through.
const WITHIN: Duration = Duration::from_millis(400);

/// Delivers every message that has no reply yet, all at once, while the turns of earlier
/// processes resume.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let (folder, round) = begin();
    let world = World(folder);
    let builder = AgentHost::builder("clerk").chat(Planner).data_dir(world.0.join("data"));
    let builder = world.tools(false).fold(builder, AgentHostBuilder::tool);
    let host = builder.add(Memory::default().with_conversation_log()).build().unwrap();
    let replies: Vec<_> = world.lines("replies");
    let is_open = |message: &String| !replies.iter().any(|reply| reply.starts_with(&format!("{message} ")));
    let last = (round.parse::<usize>().unwrap() + 1) * MESSAGES;
    let open = (0..last).map(|number| format!("m{number}")).filter(is_open);
    ready();
    host.start().await.unwrap();
    join_all(open.map(async |message| {
        let request = TurnRequest::new(&*message, &*message, "go");
        let outcome = host.agent().run(request).await.unwrap();
        let text = outcome.text.replace('\n', " | ");
        world.append("replies", &format!("{message} {:?} {text}", outcome.status));
        acknowledge(&message);
    }))
    .await;
}

fn storm(kills: usize) {
    let folder = tempfile::tempdir().unwrap();
    let world = World(folder.path().to_owned());
    let mut acknowledged = Vec::new();
    for round in 0..kills {
        acknowledged.extend(kill_within(WITHIN, "storm::child", folder.path(), round));
    }
    finish("storm::child", folder.path(), kills - 1);

    let replies = world.lines("replies");
    let text_of = |message: &str| {
        let own: Vec<_> = replies
            .iter()
            .filter(|reply| reply.starts_with(&format!("{message} ")))
            .collect();
        assert_eq!(own.len(), 1, "{message} has one final reply: {own:?}");
        own[0].clone()
    };
    acknowledged.iter().for_each(|message| drop(text_of(message)));
    assert_eq!(replies.len(), kills * MESSAGES, "each message has a reply");
    let answered = replies.iter().filter(|reply| reply.contains(" Answered ")).count();
    assert!(answered * 2 > replies.len(), "most messages are answered: {replies:#?}");
    let effects = world.counts("effects");
    let mut unknown = 0;
    for message in (0..kills * MESSAGES).map(|number| format!("m{number}")) {
        unknown += check_effects(&message, &text_of(&message), &effects);
    }
    println!(
        "{kills} kills, {} messages, {unknown} mutating calls with an unknown outcome",
        replies.len()
    );
}

/// Checks the effects of a message against its reply, and returns how many are reported as unknown.
fn check_effects(message: &str, reply: &str, effects: &BTreeMap<String, usize>) -> usize {
    let count = |(id, tool): (&str, &str), what| {
        let line = format!("{message} {id} {tool} {what}");
        effects.get(&line).copied().unwrap_or_default()
    };
    let sends = || PLAN.into_iter().filter(|(_, tool)| *tool == "send");
    let begun: usize = sends().map(|send| count(send, "begins")).sum();
    assert!(
        sends().all(|send| count(send, "begins") <= 1),
        "a mutating call ran twice: {reply}"
    );
    if !reply.contains(" Answered ") {
        // Given up: what is reported is what was done, and what may have been done.
        let told = reply.matches("send").count();
        let unknown = reply.matches("send (it is not known").count();
        let ended: usize = sends().map(|send| count(send, "ends")).sum();
        assert!(reply.starts_with(&format!("{message} Failed(")), "{reply}");
        assert!(
            begun <= told && told - unknown <= ended,
            "{begun} begun, {ended} ended: {reply}"
        );
        return unknown;
    }
    let mut unknown = 0;
    for (id, tool) in PLAN {
        let begins = count((id, tool), "begins");
        let ends = count((id, tool), "ends");
        match tool {
            "send" if reply.contains(&format!("{id}: outcome unknown")) => unknown += 1,
            "send" => assert_eq!((begins, ends), (1, 1), "{message} {id}: {reply}"),
            _ => assert!(ends >= 1, "{message} {id}: {reply}"),
        }
    }
    unknown
}

#[test]
fn ten_kills_under_load_lose_nothing_and_repeat_nothing() {
    storm(10);
}

#[test]
#[ignore = "takes minutes"]
fn three_hundred_kills_under_load_lose_nothing_and_repeat_nothing() {
    storm(300);
}
