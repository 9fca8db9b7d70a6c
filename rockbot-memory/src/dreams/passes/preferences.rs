//! Infers preferences of the user from the user's messages in several conversations.

use rockbot_core::store::StoreError;

use super::super::ask::Question;
use super::super::pass_context::PassContext;
use super::facts::{self, Facts, Filing, SHAPE};
use super::log::Said;

const FILING: Filing = Filing {
    category: "user-preferences/inferred",
    tag: "inferred",
    min_sources: 1,
};

pub(super) async fn run(cx: &mut PassContext<'_>) -> Result<(), StoreError> {
    let Some(said) = Said::since_last_time(cx).await? else {
        return Ok(());
    };
    let question = Question {
        intro: "What the user said".to_owned(),
        items: said.items(),
        shape: SHAPE,
    };
    if let Some(answer) = cx.ask::<Facts>(&question).await {
        facts::add(cx, &question, answer, &FILING).await?;
        said.read(cx);
    }
    Ok(())
}
