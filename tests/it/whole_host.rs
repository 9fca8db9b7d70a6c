//! A whole host in front of a model server on the loopback, in each dialect: what surrounds a
//! turn reaches the wire.

use std::collections::VecDeque;
use std::time::Duration;

use rockbot::CallContext;
use rockbot::agent::{AgentHost, AgentHostBuilder, OutputProgress};
use rockbot::chat::{ChatMessage, ModelGateway};
use rockbot::config::Config;
use rockbot::layer::{RateLimitExceeded, RateLimitLayer, chat_fn, tool_fn, turn_fn};
use rockbot::tool::{Tool, tool};
use rockbot::turn::{
    InputVerdict, LoopDecision, LoopPoint, OutputVerdict, TurnError, TurnProgress, UserInput, guardrail_fn, history_fn,
    policy_fn, validator_fn,
};
use serde_json::{Value, json};

use crate::support::model_server::ModelServer;
use crate::support::{Anything, Notes, collect, dialects, end_of};

const PROVIDERS: [&str; 3] = ["openai", "openai-responses", "anthropic"];

/// An answer of the server: words, or the call of a tool.
enum Answer {
    Says(&'static str),
    Calls(&'static str, Value),
}
use Answer::{Calls, Says};

/// A server that gives its answers in order, each in the dialect of its request.
fn server(answers: impl IntoIterator<Item = Answer>) -> ModelServer {
    let mut answers: VecDeque<_> = answers.into_iter().collect();
    ModelServer::start(move |raw, _| match answers.pop_front() {
        Some(Says(text)) => dialects::says(raw, text),
        Some(Calls(tool, arguments)) => dialects::calls(raw, tool, &arguments.to_string()),
        None => (400, json!({"error": {"message": "no answer is left"}}).to_string()),
    })
}

/// A host in memory whose model is at `server`.
fn host(server: &ModelServer, provider: &str) -> AgentHostBuilder {
    let text = format!(
        r#"
        [LLM.Balanced]
        Provider = "{provider}"
        Endpoint = "{}/v1"
        ApiKey = "k"
        ModelId = "test"
        "#,
        server.endpoint
    );
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let models = ModelGateway::from_config(&config).unwrap();
    AgentHost::in_memory().instructions("Be brief.").chat(models)
}

/// Returns the bodies of the requests as text, without the random marks of the host's notes.
fn bodies(server: &ModelServer) -> Vec<String> {
    server.requests().iter().map(Value::to_string).collect()
}

/// Checks which of `texts` stand in a request.
#[track_caller]
fn assert_has(body: &str, texts: &[&str], others: &[&str]) {
    for text in texts {
        assert!(body.contains(text), "{text:?} is missing in {body}");
    }
    for text in others {
        assert!(!body.contains(text), "{text:?} stands in {body}");
    }
}

/// The shop on whose behalf a request is made.
struct Shop(&'static str);

/// A tool that tells on whose behalf it runs, and reports a step.
fn whose() -> Tool {
    let whose = |_: Anything, cx: CallContext| async move {
        cx.progress().report("looking it up");
        let shop = cx.extension::<Shop>().map_or("no shop", |shop| shop.0);
        format!("{} of {shop}", cx.principal())
    };
    tool("whose", whose).description("Tells whose shop this is.").pure()
}

#[tokio::test]
async fn hooks_shape_what_the_server_reads_and_what_the_user_does() {
    for provider in PROVIDERS {
        let server = server([
            Calls("whose", json!({})),
            Says("It is Ann's."),
            Says("It is Ann's, please."),
        ]);
        let guard = guardrail_fn(|input: UserInput| async move {
            Ok(InputVerdict::Replace(input.text().replace("1234", "[number]").into()))
        });
        let metric = history_fn(|mut messages, _| async move {
            let last = messages.len() - 1;
            messages.insert(last, ChatMessage::user("The user likes metric units.").into());
            Ok(messages)
        });
        let told = policy_fn(|point, _| async move {
            Ok(match point {
                LoopPoint::AfterResults(_) => LoopDecision::add_message("Results may be old."),
                _ => LoopDecision::Continue,
            })
        });
        let polite = validator_fn(|answer: rockbot::turn::FinalAnswer, _| async move {
            Ok(if answer.text.contains("please") {
                OutputVerdict::Accept
            } else {
                OutputVerdict::complain("It is not polite.")
            })
        });
        let host = host(&server, provider)
            .tool(whose())
            .input_guardrail(guard)
            .history_processor(metric)
            .loop_policy(told)
            .output_validator(polite)
            .build()
            .unwrap();
        let outcome = host
            .agent()
            .ask("s", "My card is 1234. Whose shop is it?")
            .await
            .unwrap();
        assert_eq!(outcome.text, "It is Ann's, please.", "{provider}");
        let bodies = bodies(&server);
        assert_eq!(bodies.len(), 3, "{provider}");
        assert_has(&bodies[0], &["My card is [number].", "metric units"], &["1234"]);
        assert_has(
            &bodies[1],
            &["local of no shop", "Results may be old."],
            &["1234", "polite"],
        );
        assert_has(&bodies[2], &["It is not polite."], &["1234"]);
        let kept = host.agent().history("s").await.unwrap();
        assert_eq!(kept[0].content, "My card is [number]. Whose shop is it?");
    }
}

#[tokio::test]
async fn layers_shape_all_three_services_and_a_rate_limit_refuses() {
    for provider in PROVIDERS {
        let server = server([Calls("whose", json!({})), Says("Ann's."), Says("never")]);
        let seen = Notes::default();
        let notes = seen.clone();
        let host = host(&server, provider)
            .tool(whose())
            .turn_layer(turn_fn(|mut call, next| async move {
                call.request.content = format!("{} (in Oslo)", call.request.content.text()).into();
                let mut outcome: rockbot::turn::TurnOutcome = next.call(call).await?;
                outcome.text.push('!');
                Ok(outcome)
            }))
            .chat_layer(chat_fn(move |call, next| {
                notes.add("model");
                async move { next.call(call).await }
            }))
            .tool_layer(tool_fn(|call, next| async move {
                let mut response = next.call(call).await?;
                response.content.replace_text("hidden".to_owned());
                Ok(response)
            }))
            .turn_layer(RateLimitLayer::new(1, Duration::from_secs(3_600)).with_max_wait(Duration::ZERO))
            .build()
            .unwrap();
        let outcome = host.agent().ask("s", "Whose is it?").await.unwrap();
        assert_eq!((&*outcome.text, seen.all().len()), ("Ann's.!", 2), "{provider}");
        let refused = host.agent().ask("s", "And now?").await.unwrap_err();
        assert!(
            matches!(&refused, TurnError::Layer(cause) if cause.is::<RateLimitExceeded>()),
            "{refused:?}"
        );
        let bodies = bodies(&server);
        assert_eq!(bodies.len(), 2, "{provider}: the refused turn asked no model");
        assert_has(&bodies[1], &["Whose is it? (in Oslo)", "hidden"], &["local of"]);
    }
}

#[tokio::test]
async fn an_agent_as_a_tool_asks_its_own_server_for_its_callers_principal() {
    for provider in PROVIDERS {
        let below = server([Calls("whose", json!({})), Says("Shelf 7.")]);
        let librarian = host(&below, provider).tool(whose()).build().unwrap();
        let above = server([
            Calls("find_book", json!({"task": "Find Emma."})),
            Says("It is on shelf 7."),
        ]);
        let find = librarian.agent().as_tool("find_book", "Finds a book.");
        let host = host(&above, provider).tool(find).build().unwrap();
        let request = host.agent().ask("s", "Where is Emma?").principal("ann");
        let reports = collect(request.stream()).await;
        let steps: Vec<_> = reports
            .iter()
            .filter_map(|report| match report {
                TurnProgress::ToolProgress { tool, text, .. } => Some(format!("{tool}: {text}")),
                _ => None,
            })
            .collect();
        assert_eq!(steps, ["find_book: whose", "find_book: looking it up"], "{provider}");
        assert_has(
            &bodies(&below)[1],
            &["Find Emma.", "ann of no shop"],
            &["Where is Emma?"],
        );
        assert_has(&bodies(&above)[1], &["Where is Emma?", "Shelf 7."], &[]);
    }
}

#[tokio::test]
async fn a_tool_knows_the_principal_and_the_extensions_of_its_request_and_its_progress_names_the_call() {
    for provider in PROVIDERS {
        let server = server([Calls("whose", json!({})), Says("Ann's.")]);
        let host = host(&server, provider).tool(whose()).build().unwrap();
        let request = host.agent().ask("s", "Whose is it?").principal("ann");
        let reports = collect(request.extension(Shop("the bakery")).stream()).await;
        let progress = reports.iter().find_map(|report| match report {
            TurnProgress::ToolProgress { call, tool, text } => Some((call.as_str(), tool.as_str(), &**text)),
            _ => None,
        });
        assert_eq!(progress, Some(("c", "whose", "looking it up")), "{provider}");
        assert_has(&bodies(&server)[1], &["ann of the bakery"], &[]);
    }
}

#[tokio::test]
async fn a_typed_answer_arrives_in_parts() {
    for provider in PROVIDERS {
        let server = server([Says(r#"{"value": ["tea", "coffee", "milk"]}"#)]);
        let host = host(&server, provider).build().unwrap();
        let mut stream = host.agent().ask("s", "What is left?").output::<Vec<String>>().stream();
        let mut parts = Vec::new();
        let mut whole = None;
        while let Some(report) = stream.next().await {
            match report.unwrap() {
                OutputProgress::Partial(part) => parts.push(part),
                OutputProgress::Final { value, .. } => whole = Some(value),
                _ => {}
            }
        }
        assert_eq!(whole.unwrap(), ["tea", "coffee", "milk"], "{provider}");
        // Pieces that come together are one part.
        assert_eq!(parts.last(), Some(&json!(["tea", "coffee", "milk"])), "{provider}");
        assert!(parts.iter().all(Value::is_array), "{provider}: {parts:?}");
    }
}

#[tokio::test]
async fn a_turn_begins_from_given_messages_and_leaves_the_stored_ones_out() {
    for provider in PROVIDERS {
        let server = server([Says("Hello Bo."), Says("You are Ann.")]);
        let host = host(&server, provider).build().unwrap();
        host.agent().ask("s", "I am Bo.").await.unwrap();
        let given = vec![ChatMessage::user("I am Ann."), ChatMessage::assistant("Hello Ann.")];
        let answer = host.agent().ask("s", "Who am I?").history(given).await.unwrap();
        assert_eq!(answer.text, "You are Ann.");
        assert_has(&bodies(&server)[1], &["I am Ann.", "Hello Ann.", "Who am I?"], &["Bo"]);
    }
}

#[tokio::test]
async fn a_conversation_goes_to_another_host_and_continues_from_an_earlier_turn() {
    for provider in PROVIDERS {
        let first = server([Calls("whose", json!({})), Says("Ann's."), Says("At nine.")]);
        let host_of = |server: &ModelServer| host(server, provider).tool(whose()).build().unwrap();
        let old = host_of(&first);
        let whose = old.agent().ask("s", "Whose is it?").await.unwrap();
        end_of(old.agent().stream("s", "When does it open?")).await;
        let document = old.agent().conversation("s").export().await.unwrap();
        let text = serde_json::to_string(&document).unwrap();

        let second = server([Says("At six."), Says("On Sundays, too.")]);
        let new = host_of(&second);
        let imported = new.agent().conversation("moved");
        imported.import(serde_json::from_str(&text).unwrap()).await.unwrap();
        new.agent().ask("moved", "And closes?").await.unwrap();
        imported.fork(&whose.turn, "branch").await.unwrap();
        new.agent().ask("branch", "On Sundays?").await.unwrap();
        let bodies = bodies(&second);
        let all = [
            "Whose is it?",
            "Ann's.",
            "When does it open?",
            "At nine.",
            "And closes?",
        ];
        assert_has(&bodies[0], &all, &[]);
        assert_has(&bodies[1], &[all[0], all[1], "On Sundays?"], &all[2..]);
    }
}
