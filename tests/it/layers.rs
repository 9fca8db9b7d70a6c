//! Tower layers of a user around chat, tools and turns.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatResponse, Ledger, ModelInfo, ModelTier,
};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::ToolInvocation;
use rockbot_core::turn::{TurnFailure, TurnProgress, TurnStatus};
use rockbot_core::{BoxError, Principal};
use rockbot_host::{AgentHost, Stack, TurnCall, TurnError, chat_fn, tool_fn, turn_fn};
use rockbot_llm::{Fallback, Meter, ModelGateway, PermitLimits, Permits, PriceTable, Retry, TimeLimit};
use serde_json::json;
use tokio::sync::Semaphore;
use tower::buffer::BufferLayer;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer;
use tower::util::{BoxCloneSyncService, MapRequestLayer};
use tower::{ServiceExt, layer::layer_fn};

use crate::support::{Notes, collect, ending, host_of, noting_tool, results, settle, unanswered};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn the_first_layer_added_sees_the_request_first() {
    let notes = Notes::default();
    let chat = |name: &'static str| {
        let notes = notes.clone();
        MapRequestLayer::new(move |call: ChatCall| {
            notes.add(format!("chat {name}"));
            call
        })
    };
    let tool = |name: &'static str| {
        let notes = notes.clone();
        MapRequestLayer::new(move |call: ToolInvocation| {
            notes.add(format!("tool {name}"));
            call
        })
    };
    let turn = |name: &'static str| {
        let notes = notes.clone();
        MapRequestLayer::new(move |call: TurnCall| {
            notes.add(format!("turn {name}"));
            call
        })
    };
    let model = ScriptedModel::new().calls("look", json!({})).says("done");
    let (look, _) = noting_tool("look");
    let host = host_of(&model)
        .tool(look)
        .tool_layer(tool("first"))
        .chat_layer(chat("first"))
        .turn_layer(turn("first"))
        .chat_layer(chat("second"))
        .tool_layer(tool("second"))
        .turn_layer(turn("second"))
        .build()
        .unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let expected = ["turn", "chat", "tool", "chat"].map(|kind| [format!("{kind} first"), format!("{kind} second")]);
    assert_eq!(notes.all(), expected.concat());
}

/// Writes a word for each permit that the test adds, and ends after the third.
struct WordByWord(Arc<Semaphore>, Notes);

#[async_trait]
impl ChatClient for WordByWord {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.1.add("asked");
        for _ in 0..3 {
            self.0.acquire().await.unwrap().forget();
            if let Some(deltas) = &call.deltas {
                deltas.send(ChatDelta::Text("word "));
            }
        }
        Ok(ChatResponse::text("word word word "))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test(start_paused = true)]
async fn a_stock_limit_holds_until_the_last_delta() {
    let words = Arc::new(Semaphore::new(0));
    let notes = Notes::default();
    let host = AgentHost::in_memory()
        .chat(WordByWord(words.clone(), notes.clone()))
        .chat_layer(ConcurrencyLimitLayer::new(1))
        .build()
        .unwrap();
    let agent = host.agent();
    let streams = ["a", "b"].map(|session| tokio::spawn(collect(agent.stream(session, "go"))));
    for word in 1..=6 {
        settle().await;
        assert_eq!(notes.all().len(), 1 + (word - 1) / 3, "before word {word}");
        words.add_permits(1);
    }
    for stream in streams {
        let reports = stream.await.unwrap();
        assert_eq!(reports[0], TurnProgress::Delta("word ".to_owned()), "{reports:?}");
        assert!(matches!(reports.last(), Some(TurnProgress::Final(outcome)) if outcome.status == TurnStatus::Answered));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stock_time_out_holds_until_the_last_delta() {
    let words = Arc::new(Semaphore::new(0));
    let host = AgentHost::in_memory()
        .chat(WordByWord(words.clone(), Notes::default()))
        .chat_layer(TimeoutLayer::new(SECOND))
        .build()
        .unwrap();
    let stream = tokio::spawn(collect(host.agent().stream("s", "go")));
    settle().await;
    words.add_permits(2);
    settle().await;
    tokio::time::sleep(2 * SECOND).await;
    let reports = stream.await.unwrap();
    let Some(TurnProgress::Final(outcome)) = reports.last() else {
        panic!("got {reports:?}")
    };
    assert!(reports.len() > 1, "it had begun: {reports:?}");
    assert_eq!(
        ending(outcome),
        (
            &TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::TimedOut)),
            "The model could not be asked: the model took longer than a time-out layer allows"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_stock_time_out_around_tools_is_a_time_out_of_the_tool() {
    let model = ScriptedModel::new().calls("look", json!({})).says("done");
    let (look, handle) = mock_tool("look");
    let host = host_of(&model)
        .tool(look.pure())
        .tool_layer(TimeoutLayer::new(SECOND))
        .build()
        .unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert!(outcome.calls[0].is_error);
    assert_eq!(
        results(&model.requests()[1]),
        ["call_1: the tool exceeded its time limit; it may be tried again, perhaps with less to do"]
    );
    assert_eq!(handle.cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stock_time_out_around_turns_cancels_the_turn() {
    let model = ScriptedModel::new().hangs().says("free");
    let host = host_of(&model).turn_layer(TimeoutLayer::new(SECOND)).build().unwrap();
    let request = host.agent().request("s", "go");
    let turn = request.turn_id();
    let ended = host.agent().run(request).await;
    assert!(
        matches!(&ended, Err(TurnError::Layer(error)) if error.is::<tower::timeout::error::Elapsed>()),
        "{ended:?}"
    );
    settle().await;
    assert_eq!(host.agent().outcome(&turn).await.unwrap().status, TurnStatus::Cancelled);
    assert_eq!(host.agent().ask("s", "again").await.unwrap().text, "free");
}

/// A layer that fails: with an error, or with a panic.
fn failing<Request, Response>(
    panics: bool,
) -> impl tower::Layer<Stack<Request, Response>, Service = Stack<Request, Response>> + Clone
where
    Request: Send + 'static,
    Response: Send + 'static,
{
    layer_fn(move |_: Stack<Request, Response>| {
        BoxCloneSyncService::new(tower::service_fn(move |_: Request| async move {
            assert!(!panics, "the layer has a bug");
            Err::<Response, BoxError>("out of order".into())
        }))
    })
}

#[tokio::test]
async fn a_chat_layer_that_fails_is_an_honest_reply() {
    for (panics, text) in [
        (
            false,
            "The model could not be asked: a model call layer failed: out of order",
        ),
        (
            true,
            "The model could not be asked: the model client panicked; see its log",
        ),
    ] {
        let host = host_of(&ScriptedModel::new())
            .chat_layer(failing(panics))
            .build()
            .unwrap();
        let outcome = unanswered(host.agent().ask("s", "go").await);
        assert_eq!(
            ending(&outcome),
            (&TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::Other)), text)
        );
    }
}

#[tokio::test]
async fn a_chat_layer_passes_a_typed_error_on() {
    let layer = layer_fn(|_: Stack<ChatCall, ChatResponse>| {
        BoxCloneSyncService::new(tower::service_fn(|_: ChatCall| async {
            Err::<ChatResponse, BoxError>(ChatError::new(ChatErrorKind::RateLimited, "wait a minute").into())
        }))
    });
    let host = host_of(&ScriptedModel::new()).chat_layer(layer).build().unwrap();
    let outcome = unanswered(host.agent().ask("s", "go").await);
    assert_eq!(
        outcome.status,
        TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::RateLimited))
    );
}

#[tokio::test(start_paused = true)]
async fn the_parts_of_the_gateway_are_chat_layers() {
    let ledger = Ledger::new(PriceTable::default());
    let first = ScriptedModel::new()
        .fails(ChatErrorKind::Overloaded)
        .fails(ChatErrorKind::Auth);
    let second = ScriptedModel::new()
        .says("second")
        .calls("look", json!({}))
        .says("done");
    let (look, _) = noting_tool("look");
    let host = host_of(&first)
        .tool(look)
        .chat_layer(Fallback::to("second", second.clone()))
        .chat_layer(Meter::new().ledger(ledger.clone()))
        .chat_layer(Retry::default())
        .chat_layer(Permits::new(PermitLimits::serialized()))
        .chat_layer(TimeLimit::default())
        .build()
        .unwrap();
    assert_eq!(host.agent().ask("s", "go").await.unwrap().text, "second");
    // The first model is left alone now.
    assert_eq!(host.agent().ask("s", "go").await.unwrap().text, "done");
    first.assert_complete();
    second.assert_complete();
    assert_eq!(ledger.total().calls, 0, "the other model is not inside of the meter");
}

#[tokio::test]
async fn a_gateway_is_a_chat_client_of_a_host() {
    let model = ScriptedModel::new().calls("look", json!({})).says("done");
    let ledger = Ledger::new(PriceTable::default());
    let gateway = ModelGateway::builder(model.clone())
        .default_layers(PermitLimits::default(), Meter::new().ledger(ledger.clone()))
        .build();
    let (look, _) = noting_tool("look");
    let host = AgentHost::in_memory().chat(gateway.clone()).tool(look).build().unwrap();
    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert_eq!(outcome.text, "done");
    assert_eq!(ledger.of_turn(&outcome.turn).usage, outcome.usage);
    assert_eq!(ledger.of_session(&Principal::default(), &"s".into()).calls, 2);
    assert!(gateway.is_idle());
}

#[tokio::test]
async fn a_tool_layer_that_fails_is_a_failed_call() {
    for (panics, told) in [
        (false, "call_1: out of order"),
        (true, "call_1: the tool failed unexpectedly; try another way"),
    ] {
        let model = ScriptedModel::new().calls("look", json!({})).says("it failed");
        let (look, notes) = noting_tool("look");
        let host = host_of(&model).tool(look).tool_layer(failing(panics)).build().unwrap();
        assert_eq!(host.agent().ask("s", "go").await.unwrap().text, "it failed");
        assert_eq!(results(&model.requests()[1]), [told]);
        assert!(notes.all().is_empty());
    }
}

#[tokio::test]
async fn a_turn_layer_that_fails_is_a_typed_error_for_ask_and_stream() {
    for (panics, text) in [
        (false, "a turn layer failed: out of order"),
        (true, "a turn layer failed: it panicked; see the log for the cause"),
    ] {
        let model = ScriptedModel::new();
        let host = host_of(&model).turn_layer(failing(panics)).build().unwrap();
        let refused = host.agent().ask("s", "go").await.unwrap_err();
        assert_eq!(refused.to_string(), text);
        let mut stream = host.agent().stream("s", "go");
        let refused = futures_util::StreamExt::next(&mut stream).await.unwrap().unwrap_err();
        assert!(matches!(refused, TurnError::Layer(_)));
        assert!(futures_util::StreamExt::next(&mut stream).await.is_none());
        assert!(model.requests().is_empty());
    }
}

#[tokio::test]
async fn a_tool_layer_cannot_lift_the_need_for_approval() {
    let model = ScriptedModel::new().calls("look", json!({})).says("done");
    let (pay, paid) = noting_tool("pay");
    let (look, _) = noting_tool("look");
    // A layer that turns a harmless call into one that a person must approve.
    let redirect = MapRequestLayer::new(|mut call: ToolInvocation| {
        call.request.tool_name = "pay".into();
        call
    });
    let host = host_of(&model)
        .tool(look)
        .tool(pay.needs_approval())
        .tool_layer(redirect)
        .build()
        .unwrap();
    host.agent().ask("s", "go").await.unwrap();
    assert!(paid.all().is_empty());
    let told = &results(&model.requests()[1])[0];
    assert!(told.contains("`pay` needs the user's approval"), "{told}");
}

#[tokio::test]
async fn turns_are_a_tower_service_for_others() {
    let model = ScriptedModel::new().says("hello");
    let host = host_of(&model).build().unwrap();
    let turns = host.turns().clone();
    let service = tower::service_fn(move |call: TurnCall| {
        let turns = turns.clone();
        async move { turns.call(call).await }
    });
    let request = host.agent().request("s", "hi");
    let call = TurnCall::new(request, rockbot_core::turn::ProgressSink::none());
    assert_eq!(service.oneshot(call).await.unwrap().text, "hello");
}

#[tokio::test]
async fn functions_are_layers_in_the_order_in_which_they_were_added() {
    let notes = Notes::default();
    let model = ScriptedModel::new().calls("look", json!({})).says("done");
    let (look, _) = noting_tool("look");
    let on_chat = notes.clone();
    let on_tool = notes.clone();
    let on_turn = notes.clone();
    let last = notes.clone();
    let host = host_of(&model)
        .tool(look)
        .turn_layer(turn_fn(move |call, next| {
            on_turn.add("turn".to_owned());
            next.call(call)
        }))
        .chat_layer(chat_fn(move |call, next| {
            on_chat.add("chat".to_owned());
            next.call(call)
        }))
        .chat_layer(MapRequestLayer::new(move |call: ChatCall| {
            last.add("inner".to_owned());
            call
        }))
        .tool_layer(tool_fn(move |call, next| {
            let notes = on_tool.clone();
            async move {
                let response = next.call(call).await?;
                notes.add(format!("{} returned", response.tool_name));
                Ok(response)
            }
        }))
        .build()
        .unwrap();
    host.agent().ask("s", "Look.").await.unwrap();
    assert_eq!(notes.all(), ["turn", "chat", "inner", "look returned", "chat", "inner"]);
}

/// Sends half an answer as often as the test says and then breaks off; else answers.
struct Breaking(std::sync::atomic::AtomicUsize);

#[async_trait]
impl ChatClient for Breaking {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let send = |text| call.deltas.iter().for_each(|deltas| deltas.send(ChatDelta::Text(text)));
        send("Hel");
        use std::sync::atomic::Ordering::Relaxed;
        match self
            .0
            .fetch_update(Relaxed, Relaxed, |failures| failures.checked_sub(1))
        {
            Ok(_) => Err(ChatError::new(ChatErrorKind::CutStream, "the line is bad")),
            Err(_) => {
                send("lo.");
                Ok(ChatResponse::text("Hello."))
            }
        }
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn a_layer_that_asks_again_takes_back_what_was_streamed() {
    let persistent = || {
        chat_fn(|call, next| async move {
            let again = next.clone();
            match next.call(call.clone()).await {
                Err(_) => again.call(call).await,
                answer => answer,
            }
        })
    };
    let delta = |text: &str| TurnProgress::Delta(text.to_owned());
    let hello = || [delta("Hel"), delta("lo.")];
    let host = |breaking: usize| AgentHost::in_memory().chat(Breaking(breaking.into()));
    let read = async |host: AgentHost| {
        let mut reports = Vec::new();
        let request = host.agent().request("s", "Hi!");
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = seen.clone();
        let sink = rockbot_core::turn::ProgressSink::new(move |progress| sink.lock().unwrap().push(progress));
        let outcome = host.turns().call(TurnCall::new(request, sink)).await.unwrap();
        reports.append(&mut seen.lock().unwrap());
        assert_eq!(reports.pop(), Some(TurnProgress::Final(outcome)));
        reports
    };

    let layered = |breaking| host(breaking).chat_layer(persistent());
    assert_eq!(read(layered(0).build().unwrap()).await, hello());
    let once = [vec![delta("Hel"), TurnProgress::Retract], hello().to_vec()].concat();
    assert_eq!(read(layered(1).build().unwrap()).await, once);
    // Our own layer takes its pieces back by itself, and the host does not do it a second time.
    let ours = host(1).chat_layer(persistent()).chat_layer(Retry::default());
    assert_eq!(read(ours.build().unwrap()).await, once);
    let twice = layered(3).chat_layer(persistent());
    let three = [&once[..2], &once[..2], &once[..2], &hello()].concat();
    assert_eq!(read(twice.build().unwrap()).await, three);
}

#[tokio::test]
async fn the_error_of_a_function_keeps_its_type() {
    /// Closed on Sundays.
    #[derive(Debug)]
    struct Closed;
    impl std::fmt::Display for Closed {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("closed on Sundays")
        }
    }
    impl std::error::Error for Closed {}
    let host = host_of(&ScriptedModel::new())
        .turn_layer(turn_fn(|_, _| async { Err(Closed.into()) }))
        .build()
        .unwrap();
    let error = host.agent().ask("s", "Hi!").await.unwrap_err();
    assert!(
        matches!(&error, TurnError::Layer(source) if source.is::<Closed>()),
        "{error:?}"
    );

    let notes = Notes::default();
    let kinds = notes.clone();
    let model = ScriptedModel::new().fails(ChatErrorKind::Auth);
    let host = host_of(&model)
        .chat_layer(chat_fn(move |call, next| {
            let kinds = kinds.clone();
            async move {
                let answer = next.call(call).await;
                let kind = answer
                    .as_ref()
                    .err()
                    .and_then(|error| error.downcast_ref())
                    .map(ChatError::kind);
                kinds.add(format!("{kind:?}"));
                answer
            }
        }))
        .build()
        .unwrap();
    host.agent().ask("s", "Hi!").await.unwrap_err();
    assert_eq!(notes.all(), ["Some(Auth)"]);
}

/// Tower's policy of retries, for calls that failed.
#[derive(Clone)]
struct Attempts(usize);

impl<Request: Clone, Response, Error> tower::retry::Policy<Request, Response, Error> for Attempts {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut Request, result: &mut Result<Response, Error>) -> Option<Self::Future> {
        if result.is_ok() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request) -> Option<Request> {
        Some(request.clone())
    }
}

#[tokio::test]
async fn stock_layers_for_retries_load_and_buffers_need_no_types() {
    let (look, _) = noting_tool("look");
    let host = AgentHost::in_memory()
        .chat(Breaking(2.into()))
        .tool(look)
        .chat_layer(LoadShedLayer::new())
        .chat_layer(BufferLayer::new(8))
        .chat_layer(RetryLayer::new(Attempts(2)))
        .tool_layer(LoadShedLayer::new())
        .tool_layer(RetryLayer::new(Attempts(1)))
        .tool_layer(BufferLayer::new(8))
        .turn_layer(LoadShedLayer::new())
        .turn_layer(BufferLayer::new(8))
        .build()
        .unwrap();
    let reports = collect(host.agent().stream("s", "Hi!")).await;
    let mut shown = String::new();
    for report in &reports {
        match report {
            TurnProgress::Delta(text) => shown += text,
            TurnProgress::Retract => shown.clear(),
            _ => {}
        }
    }
    assert_eq!(shown, "Hello.", "{reports:?}");
}
