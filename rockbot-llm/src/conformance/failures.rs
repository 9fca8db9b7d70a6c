//! Failures: reports of servers, and failures of connections.

use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::chat::ChatErrorKind::{self, *};
use rockbot_core::chat::{ChatCall, ChatError, FinishReason, Overflow};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{EMPTY, Problem, Script, ScriptedCall, WIRES, WORDS, Wire, call, streamed};
use crate::fixture::{Reply, Server};
use crate::http::ConnectionOptions;

/// The kinds of the errors that a server reports.
const PROBLEMS: [(Problem, ChatErrorKind); 11] = [
    (Problem::Overloaded, Overloaded),
    (Problem::RateLimited, RateLimited),
    (Problem::TooLong, ContextOverflow),
    (Problem::TooLarge, ContextOverflow),
    (Problem::Invalid, InvalidRequest),
    (Problem::WrongKey, Auth),
    (Problem::Forbidden, Auth),
    (Problem::NoCredit, QuotaExceeded),
    (Problem::UnknownModel, NotFound),
    (Problem::TookTooLong, TimedOut),
    (Problem::Broken, Overloaded),
];

/// Returns the error of `call` to a server that gives these replies.
async fn error(
    wire: &dyn Wire,
    replies: impl IntoIterator<Item = Reply>,
    call: ChatCall,
    change: impl Fn(&mut ConnectionOptions),
) -> ChatError {
    let server = Server::start(replies).await;
    let client = wire.client(&server.endpoint(), &change);
    let error = client.chat(call).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("key`"), "{error}");
    error
}

fn unchanged(_: &mut ConnectionOptions) {}

#[tokio::test]
async fn errors_have_their_kind_status_and_advice() {
    for wire in WIRES {
        for (problem, kind) in PROBLEMS {
            let (status, body) = wire.error(problem);
            let headers = "content-type: application/json\r\nretry-after: 7\r\n";
            for call in [call(), streamed().0] {
                let error = error(wire, [Reply::new(status, headers, &body)], call, unchanged).await;
                let place = format!("{} {problem:?}: {error}", wire.name());
                assert_eq!((error.kind(), error.status()), (kind, Some(status)), "{place}");
                assert_eq!(error.retry_after(), Some(Duration::from_secs(7)), "{place}");
                let sizes = Overflow::new(Some(200_000), Some(213_462));
                assert_eq!(error.overflow() == Some(sizes), problem == Problem::TooLong, "{place}");
            }
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_one() {
    for wire in WIRES {
        for (problem, kind) in [PROBLEMS[0], PROBLEMS[1], PROBLEMS[2], PROBLEMS[10]] {
            let events = wire.events(&WORDS);
            let stream = events[..3].concat() + &wire.error_event(problem);
            let error = error(wire, [Reply::stream(&stream)], streamed().0, unchanged).await;
            assert_eq!(error.kind(), kind, "{} {problem:?}: {error}", wire.name());
        }
    }
}

#[tokio::test]
async fn an_error_where_a_whole_answer_should_be_is_one() {
    for wire in WIRES {
        let body = wire.error(Problem::Overloaded).1;
        let error = error(wire, [Reply::json(200, &body)], call(), unchanged).await;
        assert_eq!(error.kind(), Overloaded, "{}: {error}", wire.name());
    }
}

#[tokio::test]
async fn every_cut_of_a_stream_is_an_error() {
    for wire in WIRES {
        let events = wire.events(&WORDS);
        let end = events
            .iter()
            .position(|event| {
                ["stop\"", "end_turn", "response.completed"]
                    .iter()
                    .any(|end| event.contains(end))
            })
            .unwrap();
        for count in 0..end {
            let error = error(
                wire,
                [Reply::stream(&events[..count].concat())],
                streamed().0,
                unchanged,
            )
            .await;
            assert_eq!(error.kind(), CutStream, "{} after {count}: {error}", wire.name());
        }
        let middle = events[..2].concat() + &events[2][..20];
        let error = error(wire, [Reply::stream(&middle)], streamed().0, unchanged).await;
        assert_eq!(error.kind(), CutStream, "{}: {error}", wire.name());
    }
}

/// A call whose arguments are JSON already where its answer ends for an unknown reason.
const CALLS_WITHOUT_AN_END: Script = Script {
    calls: &[ScriptedCall {
        id: "toolu_a",
        name: "pay",
        arguments: &["{}"],
    }],
    finish: FinishReason::Other,
    ..WORDS
};

#[tokio::test]
async fn calls_of_an_answer_without_a_known_end_are_an_error() {
    for wire in WIRES {
        let script = &CALLS_WITHOUT_AN_END;
        let stream = wire.events(script).concat();
        // Without the reason, but with the end of the stream.
        let silent = stream
            .replace(r#""finish_reason":"novel""#, r#""finish_reason":null"#)
            .replace(r#""stop_reason":"pause_turn""#, r#""stop_reason":null"#)
            .replace(r#""reason":"max_tool_calls""#, r#""reason":null"#);
        assert_ne!(silent, stream, "{}", wire.name());
        for (reply, call) in [
            (Reply::json(200, &wire.whole(script)), call()),
            (Reply::stream(&stream), streamed().0),
            (Reply::stream(&silent), streamed().0),
        ] {
            let error = error(wire, [reply], call, unchanged).await;
            assert_eq!(
                (error.kind(), error.retry_helps()),
                (CutStream, true),
                "{}: {error}",
                wire.name()
            );
        }
    }
}

#[tokio::test]
async fn a_broken_stream_is_tried_again_after_a_reset() {
    for wire in WIRES {
        let events = wire.events(&WORDS);
        let begun = events
            .iter()
            .take_while(|event| !event.contains("\"it \""))
            .cloned()
            .collect::<String>();
        for broken in [begun.clone(), begun + &wire.error_event(Problem::Overloaded)] {
            let server = Server::start([Reply::stream(&broken), Reply::stream(&events.concat())]).await;
            let client = wire.client(&server.endpoint(), &|options| {
                options.retry.max_attempts = 2;
                options.retry.random = || 0.0;
            });
            let (call, heard) = streamed();
            assert_eq!(client.chat(call).await.unwrap().text, "so it is", "{}", wire.name());
            let heard = heard.lock().unwrap();
            assert_eq!((heard.text.as_str(), heard.resets), ("so it is", 1), "{}", wire.name());
        }
    }
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_when_it_says() {
    for wire in WIRES {
        let (status, body) = wire.error(Problem::Overloaded);
        let refused = Reply::new(status, "retry-after-ms: 1\r\n", &body);
        let server = Server::start([refused, Reply::json(200, &wire.whole(&WORDS))]).await;
        let client = wire.client(&server.endpoint(), &|options| options.retry.max_attempts = 2);
        assert_eq!(client.chat(call()).await.unwrap().text, "so it is", "{}", wire.name());
    }
}

#[tokio::test]
async fn a_stream_that_pauses_too_long_is_cut() {
    for wire in WIRES {
        let begun = wire.events(&WORDS)[..3].concat();
        let idle = |options: &mut ConnectionOptions| options.limits.idle = Duration::from_millis(20);
        let error = error(wire, [Reply::stalling_stream(&begun)], streamed().0, idle).await;
        assert_eq!(error.kind(), CutStream, "{}: {error}", wire.name());
    }
}

#[tokio::test]
async fn a_call_ends_at_its_limits() {
    for wire in WIRES {
        let limit = |options: &mut ConnectionOptions| options.limits.call = Duration::from_millis(50);
        let own = error(wire, [Reply::Hang(Vec::new())], call(), limit).await;
        let deadline = Instant::now() + Duration::from_millis(50);
        let late = call().with_context(CallContext::new("s").with_deadline(deadline));
        let work = error(wire, [Reply::Hang(Vec::new())], late, unchanged).await;
        assert_eq!([own.kind(), work.kind()], [TimedOut, TimedOut], "{}", wire.name());
    }
}

#[tokio::test]
async fn a_cancelled_call_lets_the_server_go() {
    for wire in WIRES {
        for is_streamed in [false, true] {
            let mut server = Server::start([Reply::stalling_stream(&wire.events(&WORDS)[..3].concat())]).await;
            let client = wire.client(&server.endpoint(), &|_| {});
            let cancellation = CancellationToken::new();
            let cx = CallContext::new("s").with_cancellation(cancellation.clone());
            let call = if is_streamed { streamed().0 } else { call() };
            let asking = tokio::spawn(async move { client.chat(call.with_context(cx)).await });
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            cancellation.cancel();
            assert_eq!(asking.await.unwrap().unwrap_err().kind(), Cancelled, "{}", wire.name());
            server.client_gone().await;
        }
    }
}

#[tokio::test]
async fn an_answer_beyond_the_limits_is_refused() {
    for wire in WIRES {
        let long = Script {
            text: &["0123456789012345678901234567890123456789012345678901234567890123456789"],
            ..EMPTY
        };
        let whole = Reply::json(200, &wire.whole(&long));
        let stream = || Reply::stream(&wire.events(&long).concat());
        let body = |options: &mut ConnectionOptions| options.limits.body = 60;
        let event = |options: &mut ConnectionOptions| options.limits.event = 60;
        let errors = [
            error(wire, [whole], call(), body).await,
            error(wire, [stream()], streamed().0, body).await,
            error(wire, [stream()], streamed().0, event).await,
        ];
        for error in errors {
            assert_eq!(
                (error.kind(), error.retry_helps()),
                (InvalidResponse, false),
                "{}: {error}",
                wire.name()
            );
        }
    }
}

#[tokio::test]
async fn a_body_that_is_no_answer_is_an_error() {
    for wire in WIRES {
        let page = Reply::new(200, "content-type: text/html\r\n", "<html>Sign in</html>");
        for call in [call(), streamed().0] {
            assert_eq!(
                error(wire, [page.clone()], call, unchanged).await.kind(),
                NotFound,
                "{}",
                wire.name()
            );
        }
        let whole = wire.whole(&WORDS);
        let halves = (0..whole.len()).step_by(7).map(|end| &whole[..end]);
        for body in halves.chain(["null", "[]", "{}", "7", "x"]) {
            let error = error(wire, [Reply::json(200, body)], call(), unchanged).await;
            assert_eq!(error.kind(), InvalidResponse, "{} {body}: {error}", wire.name());
        }
        let garbage = Reply::stream("data: {\"choices\":7,\"type\":[]\n\ndata: x\n\n");
        assert_eq!(
            error(wire, [garbage], streamed().0, unchanged).await.kind(),
            InvalidResponse
        );
    }
}

#[tokio::test]
async fn an_answer_of_which_the_filter_left_nothing_is_an_error() {
    for wire in WIRES {
        let filtered = Script {
            finish: FinishReason::ContentFilter,
            ..EMPTY
        };
        let whole = error(wire, [Reply::json(200, &wire.whole(&filtered))], call(), unchanged).await;
        let stream = Reply::stream(&wire.events(&filtered).concat());
        let stream = error(wire, [stream], streamed().0, unchanged).await;
        assert_eq!(
            [whole.kind(), stream.kind()],
            [ContentFiltered, ContentFiltered],
            "{}",
            wire.name()
        );
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    for wire in WIRES {
        let error = wire.client(&endpoint, &|_| {}).chat(call()).await.unwrap_err();
        assert_eq!(error.kind(), Unreachable, "{}: {error}", wire.name());
    }
}
