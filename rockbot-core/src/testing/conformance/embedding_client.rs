//! The conformance suite of [`EmbeddingClient`].

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::CallContext;
use crate::chat::ChatErrorKind;
use crate::embedding::{Embedding, EmbeddingCall, EmbeddingClient, EmbeddingError};

/// Checks that the values that `make` creates keep the contract of [`EmbeddingClient`].
///
/// The client must be able to answer: with a model or a server behind it.
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn embedding_client<C: EmbeddingClient>(make: impl AsyncFn() -> C) {
    says_which_model_it_asks(&make().await);
    answers_a_vector_to_each_text(&make().await).await;
    answers_many_texts_in_their_order(&make().await).await;
    is_not_asked_about_nothing(&make().await).await;
    fails_when_the_call_is_cancelled_or_late(&make().await).await;
}

fn says_which_model_it_asks(client: &impl EmbeddingClient) {
    assert!(!client.model().is_empty(), "a model has a name");
    assert_eq!(client.model(), client.model(), "which stays the same");
}

async fn answers_a_vector_to_each_text(client: &impl EmbeddingClient) {
    let texts = ["A cat sleeps.", "The stock market fell.", "A cat sleeps."];
    let vectors = embed(client, &texts).await;
    assert_eq!(vectors.len(), texts.len(), "there is one vector for each text");
    let cat = &vectors[0];
    let market = &vectors[1];
    let again = &vectors[2];
    check_same(cat, again);
    assert!(
        cat.similarity(market) < cat.similarity(again),
        "other texts lie elsewhere"
    );
    check_same(&embed(client, &texts[..1]).await[0], cat);
}

async fn answers_many_texts_in_their_order(client: &impl EmbeddingClient) {
    let texts: Vec<_> = (0..100).map(|number| format!("the text {number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let vectors = embed(client, &texts).await;
    assert_eq!(vectors.len(), texts.len(), "there is one vector for each text");
    let dimension = vectors[0].dimension();
    assert!(
        vectors.iter().all(|vector| vector.dimension() == dimension),
        "all have the same dimension"
    );
    check_same(&vectors[99], &embed(client, &texts[99..]).await[0]);
}

async fn is_not_asked_about_nothing(client: &impl EmbeddingClient) {
    assert_eq!(embed(client, &[]).await, [], "no texts have no vectors");
}

async fn fails_when_the_call_is_cancelled_or_late(client: &impl EmbeddingClient) {
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let cancelled = CallContext::new("session").with_cancellation(cancellation);
    check_failure(client, cancelled, ChatErrorKind::Cancelled).await;
    let past = Instant::now().checked_sub(Duration::from_secs(1));
    let late = CallContext::new("session").with_deadline(past.unwrap_or_else(Instant::now));
    check_failure(client, late, ChatErrorKind::TimedOut).await;
}

/// Servers compute with rounding errors that depend on what else they compute.
#[track_caller]
fn check_same(one: &Embedding, other: &Embedding) {
    let similarity = one.similarity(other);
    assert!(
        similarity > 0.999,
        "the same text lies in the same place ({similarity})"
    );
}

async fn check_failure(client: &impl EmbeddingClient, cx: CallContext, expected: ChatErrorKind) {
    let failed = client.embed(EmbeddingCall::new(["text".to_owned()], cx)).await;
    let kind = match failed.expect_err("a cancelled or late call fails") {
        EmbeddingError::Call(error) => Some(error.kind()),
        _ => None,
    };
    assert_eq!(
        kind,
        Some(expected),
        "the kind of the error of a cancelled or late call"
    );
}

async fn embed(client: &impl EmbeddingClient, texts: &[&str]) -> Vec<Embedding> {
    let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
    let embedded = client
        .embed(EmbeddingCall::new(texts, CallContext::new("session")))
        .await;
    embedded.expect("the client can embed the texts of the suite")
}
