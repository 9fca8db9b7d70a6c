//! Infers preferences of the user from the user's messages in several conversations.
//!
//! A preference shows in messages of several days, so the pass waits for a week of messages, or for
//! as many as a question has room for, and shows the newer half of them again.

use std::time::Duration;

use rockbot_core::store::StoreError;

use super::super::ask::Question;
use super::super::pass_context::PassContext;
use super::facts::{self, Facts, Filing, SHAPE};
use super::log::{MAX_ENTRIES, Said};

/// Age of the oldest message at which the messages are looked at.
const WINDOW: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const FILING: Filing = Filing {
    category: "user-preferences/inferred",
    tag: "inferred",
    min_sources: 1,
};

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let Some(said) = Said::since_last_time(cx, MAX_ENTRIES).await? else {
        return Ok(());
    };
    if !said.is_worth_a_look(cx.now, WINDOW) {
        return Ok(());
    }
    let question = Question {
        intro: "What the user said".to_owned(),
        items: said.items(),
        shape: SHAPE,
    };
    if let Some(answer) = cx.ask::<Facts>(&question).await {
        facts::add(cx, &question, answer, &FILING).await?;
        said.read_older_half(cx);
    } else {
        said.go_on(cx);
    }
    Ok(())
}
