//! The client of embeddings against recorded servers on the loopback.

use std::time::Duration;

use rockbot_core::testing::{HashedEmbeddings, conformance};
use rockbot_core::{CallContext, Secret};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::fixture::{Reply, Server};

const KEY: &str = "sk-very-secret-key";

fn client(server: &Server) -> OpenAiEmbeddingsBuilder {
    let client = OpenAiEmbeddings::builder(server.endpoint(), "m").api_key(Secret::from(KEY));
    client.max_attempts(1)
}

fn call(texts: &[&str]) -> EmbeddingCall {
    let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
    EmbeddingCall::new(texts, CallContext::new("s"))
}

fn vectors(all: &[&[f32]]) -> Vec<Embedding> {
    let vectors = all.iter().map(|values| Embedding::new(values.to_vec()).unwrap());
    vectors.collect()
}

/// Embeds two texts that are answered with `data`.
async fn answered(data: Value) -> Result<Vec<Embedding>, EmbeddingError> {
    let server = Server::start([Reply::json(200, &json!({ "object": "list", "data": data }).to_string())]).await;
    client(&server).build().unwrap().embed(call(&["a", "b"])).await
}

async fn check_error(data: Value, expected: &str) {
    let error = answered(data).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

fn kind(error: &EmbeddingError) -> Option<ChatErrorKind> {
    match error {
        EmbeddingError::Call(error) => Some(error.kind()),
        _ => None,
    }
}

#[tokio::test]
async fn keeps_the_promises_of_an_embedding_client() {
    // One server for each client that the suite makes; what it says is what the hashing client would.
    let client = async || {
        let server = Server::answering(|request| async move {
            let (_, body) = request.split_once("\r\n\r\n").unwrap();
            let asked: Value = serde_json::from_str(body).unwrap();
            let texts: Vec<_> = asked["input"]
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect();
            let vectors = HashedEmbeddings::new().embed(call(&texts)).await.unwrap();
            let data = vectors
                .iter()
                .enumerate()
                .map(|(index, vector)| json!({ "index": index, "embedding": vector.values() }));
            Reply::json(200, &json!({ "data": data.collect::<Vec<_>>() }).to_string())
        });
        client(&server.await).build().unwrap()
    };
    conformance::embedding_client(client).await;
}

#[tokio::test]
async fn a_request_names_the_model_and_all_texts() {
    let server = Server::start([Reply::json(200, r#"{"data":[{"index":0,"embedding":[1]}]}"#)]).await;
    let client = OpenAiEmbeddings::builder(server.endpoint() + "/embeddings/", "m").api_key(KEY.into());
    client
        .build()
        .unwrap()
        .embed(call(&["a \"quoted\" text"]))
        .await
        .unwrap();
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains(&format!("\r\nauthorization: Bearer {KEY}\r\n")),
        "{request}"
    );
    let body = r#"{"model":"m","input":["a \"quoted\" text"],"encoding_format":"float"}"#;
    assert!(request.ends_with(&format!("\r\n\r\n{body}")), "{request}");
}

#[tokio::test]
async fn vectors_stand_where_their_index_says() {
    let expected = vectors(&[&[1.0, 0.0], &[0.0, 1.0]]);
    let swapped = json!([{ "index": 1, "embedding": [0, 3.5] }, { "index": 0, "embedding": [2, 0] }]);
    assert_eq!(answered(swapped).await.unwrap(), expected);
    let in_order = json!([{ "embedding": [1, 0] }, { "embedding": [0, 1] }]);
    assert_eq!(answered(in_order).await.unwrap(), expected);
}

#[tokio::test]
async fn many_texts_are_several_requests() {
    let replies = [&["[1,0]", "[0,1]"][..], &["[1,1]"]].map(|vectors| {
        let vectors: Vec<_> = vectors
            .iter()
            .map(|vector| format!(r#"{{"embedding":{vector}}}"#))
            .collect();
        Reply::json(200, &format!(r#"{{"data":[{}]}}"#, vectors.join(",")))
    });
    let server = Server::start(replies).await;
    let client = client(&server).batch(2.try_into().unwrap()).build().unwrap();
    let found = client.embed(call(&["a", "b", "c"])).await.unwrap();
    assert_eq!(found, vectors(&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]]));
    assert_eq!(server.requests().len(), 2);
    assert!(server.requests()[1].contains(r#""input":["c"]"#));
}

#[tokio::test]
async fn other_vectors_than_were_asked_for_are_refused() {
    let count = |answered| {
        format!("`m` answered {answered} vectors to 2 texts; check that its server speaks OpenAI's embeddings")
    };
    let one = json!({ "index": 0, "embedding": [1, 0] });
    check_error(json!([]), &count(0)).await;
    check_error(json!([one]), &count(1)).await;
    check_error(json!([one, one, one]), &count(3)).await;
    check_error(json!([one, one]), &count(1)).await;
    check_error(json!([one, { "index": 7, "embedding": [1, 0] }]), &count(1)).await;
    let dimension = "`m` answered a vector of 3 numbers after ones of 2; restart to begin anew with it";
    check_error(json!([one, { "index": 1, "embedding": [1, 0, 0] }]), dimension).await;
    for (vector, why) in [
        (json!([]), "there are no numbers in it"),
        (json!([0, 0]), "all its numbers are zero"),
        (json!([1e99, 1]), "it has numbers that are infinite or none at all"),
        (json!([null, 1]), "it has numbers that are infinite or none at all"),
    ] {
        let expected = format!("`m` answered something else than a vector: {why}");
        check_error(json!([one, { "index": 1, "embedding": vector }]), &expected).await;
    }
}

#[tokio::test]
async fn the_dimension_stays_what_it_was() {
    let reply = |vector: &str| Reply::json(200, &format!(r#"{{"data":[{{"embedding":{vector}}}]}}"#));
    let server = Server::start([reply("[1,0]"), reply("[1,0,0]"), reply("[0,1]")]).await;
    let client = client(&server).build().unwrap();
    client.embed(call(&["a"])).await.unwrap();
    let error = client.embed(call(&["a"])).await.unwrap_err();
    assert!(
        matches!(
            error,
            EmbeddingError::Dimension {
                expected: 2,
                answered: 3,
                ..
            }
        ),
        "{error}"
    );
    client.embed(call(&["a"])).await.unwrap();
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_of_its_kind() {
    use ChatErrorKind::*;
    for (status, body, expected) in [
        (200, "{", InvalidResponse),
        (200, r#"{"object":"list"}"#, InvalidResponse),
        (200, r#"{"data":[{"embedding":[[1,2]]}]}"#, InvalidResponse),
        (200, r#"{"data":[{"embedding":"AACAPw=="}]}"#, InvalidResponse),
        (200, r#"{"error":{"message":"busy","code":502}}"#, Overloaded),
        (401, &format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#), Auth),
        (
            501,
            r#"{"error":{"message":"This server does not support embeddings."}}"#,
            NotFound,
        ),
        (
            413,
            r#"{"error":"Input validation error: inputs must have less than 512 tokens"}"#,
            ContextOverflow,
        ),
    ] {
        let server = Server::start([Reply::json(status, body)]).await;
        let error = client(&server).build().unwrap().embed(call(&["a"])).await.unwrap_err();
        assert_eq!(kind(&error), Some(expected), "{body}: {error}");
        assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_is_wrong_is_not() {
    let answer = Reply::json(200, r#"{"data":[{"embedding":[1]}]}"#);
    let busy = Reply::new(429, "retry-after-ms: 1\r\n", "");
    let server = Server::start([busy.clone(), answer.clone()]).await;
    let found = client(&server)
        .max_attempts(2)
        .build()
        .unwrap()
        .embed(call(&["a"]))
        .await;
    assert_eq!(found.unwrap(), vectors(&[&[1.0]]));
    let server = Server::start([busy.clone(), busy, answer.clone()]).await;
    let failed = client(&server)
        .max_attempts(2)
        .build()
        .unwrap()
        .embed(call(&["a"]))
        .await;
    assert_eq!(kind(&failed.unwrap_err()), Some(ChatErrorKind::RateLimited));
    let server = Server::start([answer.clone(), answer]).await;
    client(&server)
        .max_attempts(2)
        .build()
        .unwrap()
        .embed(call(&["a", "b"]))
        .await
        .unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_late_lets_the_server_go() {
    let check = async |limit: Duration, cx: CallContext, stop: Option<CancellationToken>, expected| {
        let mut server = Server::start([Reply::Hang(Vec::new())]).await;
        let client = client(&server).timeout(limit).build().unwrap();
        let asking = tokio::spawn(async move { client.embed(EmbeddingCall::new(["a".to_owned()], cx)).await });
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        stop.iter().for_each(CancellationToken::cancel);
        assert_eq!(kind(&asking.await.unwrap().unwrap_err()), Some(expected));
        server.client_gone().await;
    };
    let long = Duration::from_secs(600);
    let cx = CallContext::new("s");
    let stop = CancellationToken::new();
    check(
        long,
        cx.clone().with_cancellation(stop.clone()),
        Some(stop),
        ChatErrorKind::Cancelled,
    )
    .await;
    let soon = Instant::now() + Duration::from_millis(300);
    check(long, cx.clone().with_deadline(soon), None, ChatErrorKind::TimedOut).await;
    check(Duration::from_millis(300), cx, None, ChatErrorKind::TimedOut).await;
}
