//! The load: conversations whose messages do not wait for answers.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesOrdered;
use rockbot::message::{AgentReply, MessageEnvelope, RequestError, UserMessage};
use rockbot::prelude::*;
use tokio::time::{Instant, sleep};

use crate::arguments::Arguments;

/// Attempts to send one message, whose id stays the same.
const ATTEMPTS: u32 = 10;

/// The times until the answers, in the order of the messages of each conversation; `None` where
/// there was no answer.
pub(crate) type Answers = Vec<Vec<Option<Duration>>>;

/// Sends the messages of all conversations, and waits for their answers.
pub(crate) async fn run(arguments: &Arguments, user: &UserProxy) -> Result<Answers, BoxError> {
    let pause = arguments.time / u32::try_from(arguments.messages)?;
    let talk = async |session: usize| {
        // The conversations do not all begin at once.
        sleep(pause * u32::try_from(session)? / u32::try_from(arguments.sessions)?).await;
        Ok::<_, BoxError>(talk(arguments, user, session, pause).await)
    };
    try_join_all((0..arguments.sessions).map(talk)).await
}

/// Sends the messages of a conversation one after another, with a pause between them.
///
/// They are one task: in tasks of their own, two of them could overtake each other before they are
/// sent.
async fn talk(arguments: &Arguments, user: &UserProxy, session: usize, pause: Duration) -> Vec<Option<Duration>> {
    let (mut waiting, mut answers) = (FuturesOrdered::new(), Vec::new());
    for number in 1..=arguments.messages {
        waiting.push_back(ask(user, session, number));
        let mut next = pin!(sleep(pause));
        loop {
            tokio::select! {
                Some(answer) = waiting.next() => answers.push(answer),
                () = &mut next => break,
            }
        }
    }
    answers.extend(waiting.collect::<Vec<_>>().await);
    answers
}

/// The text that a message has noted.
pub(crate) fn note(session: usize, number: usize) -> String {
    format!("s{session} {number}")
}

/// Sends one message until it is answered. Returns the time that it took.
async fn ask(user: &UserProxy, session: usize, number: usize) -> Option<Duration> {
    let begun = Instant::now();
    let text = format!("Take a note: \"{}\"", note(session, number));
    let message = UserMessage::new(format!("session-{session}"), text);
    let message = MessageEnvelope::of(&message).ok()?.with_id(note(session, number));
    for attempt in 1..=ATTEMPTS {
        match user.send_envelope(message.clone(), |_: AgentReply| ()).await {
            Ok(_) => return Some(begun.elapsed()),
            // The broker may be away for a while.
            Err(error) => tell(session, number, attempt, &error),
        }
        sleep(Duration::from_secs(1)).await;
    }
    None
}

fn tell(session: usize, number: usize, attempt: u32, error: &RequestError) {
    eprintln!("message {number} of session {session}, attempt {attempt}: {error}");
}
