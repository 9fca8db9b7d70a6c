//! Canaries: what is secret stands in no `Debug` text, log, error, reply and file, whatever fails.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rockbot::chat::{
    AnthropicChat, ChatCall, ChatClient, ChatMessage, ChatRequest, EmbeddingClient, ModelGateway, ModelSettings,
    OpenAiChat, OpenAiEmbeddings, OpenAiResponses,
};
use rockbot::config::Config;
use rockbot::implement::chat::{DeltaSink, EmbeddingCall, LlmSettings};
use rockbot::message::pulsar::PulsarSettings;
use rockbot::message::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot_core::context::Trust;
use rockbot_core::messaging::{DeadLetters as _, Delivery, MessageEnvelope, MessagePublisher as _, RequestClient};
use rockbot_core::turn::TurnRequest;
use rockbot_core::user::UserMessage;
use rockbot_core::{CallContext, Secret};
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use crate::support::dialects;
use crate::support::model_server::ModelServer;
use crate::support::networks::broker::Exchange;
use crate::support::networks::until;

/// Stands in all that is secret.
const CANARY: &str = "canary4711";

/// A secret of its own, so that a text that holds one says which.
fn secret(place: &str) -> String {
    format!("{CANARY}-{place}")
}

/// The logs of a test, at the level of traces.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<u8>>>);

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Logs {
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let logs = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || logs.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

#[track_caller]
fn check(at: &str, text: &str) {
    assert!(!text.contains(CANARY), "{at}: {text}");
}

/// Checks an error, the errors behind it, and what `Debug` says of them.
#[track_caller]
fn check_error(at: &str, error: &(dyn Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        check(at, &format!("{error} {error:?} {error:#?}"));
        next = error.source();
    }
}

/// A server that quotes the whole request in each of its errors: whole, in a stream, and where an
/// answer should be.
fn quoting(status: u16, in_stream: bool) -> ModelServer {
    ModelServer::start(move |raw, _| {
        let error = json!({"type": "error", "error": {"message": raw, "type": raw, "code": "no"}, "request_id": raw});
        if in_stream {
            (200, format!("event: error\ndata: {error}\n\n"))
        } else {
            (status, error.to_string())
        }
    })
}

/// The clients of all dialects, with a secret in each place that may hold one.
fn clients(endpoint: &str) -> Vec<(String, Arc<dyn ChatClient>)> {
    let endpoint = format!("{endpoint}/v1?key={}&other={}", secret("query"), secret("other"));
    macro_rules! client {
        ($client:ident) => {{
            let builder = $client::builder(&endpoint, "m")
                .api_key(Secret::from(secret("key")))
                .header("x-shown", secret("header"))
                .secret_header("x-secret", Secret::from(secret("secret-header")))
                .model_settings(ModelSettings::new().with_extra_header("x-extra", secret("extra-header")))
                .max_attempts(1);
            let shown = format!("{builder:?} {builder:#?}");
            let client = builder.build().unwrap();
            (
                format!("{shown} {client:?} {client:#?}"),
                Arc::new(client) as Arc<dyn ChatClient>,
            )
        }};
    }
    vec![client!(OpenAiChat), client!(OpenAiResponses), client!(AnthropicChat)]
}

#[tokio::test]
async fn clients_repeat_no_secret_whatever_the_server_quotes() {
    let logs = Logs::default();
    let _listening = logs.listen();
    for (status, in_stream) in [
        (400, false),
        (401, false),
        (404, false),
        (500, false),
        (200, false),
        (200, true),
    ] {
        let server = quoting(status, in_stream);
        for (shown, client) in clients(&server.endpoint) {
            check("a client", &shown);
            let settings = ModelSettings::new().with_extra_header("x-request", secret("request-header"));
            let mut request = ChatRequest::new([ChatMessage::user("hi")]);
            request.settings = settings.shared();
            let call = ChatCall::new(request, CallContext::new("s"));
            check("a call", &format!("{call:?}"));
            let call = if in_stream {
                call.with_deltas(DeltaSink::new(|_| {}))
            } else {
                call
            };
            let at = format!("{status}, {in_stream}");
            check_error(&at, &client.chat(call).await.unwrap_err());
        }
    }
    for endpoint in [
        "http://127.0.0.1:9",
        "http://nowhere.invalid",
        "http://127.0.0.1:9/?a=b",
    ] {
        for (_, client) in clients(endpoint) {
            let call = ChatCall::new(ChatRequest::new([ChatMessage::user("hi")]), CallContext::new("s"));
            check_error(endpoint, &client.chat(call).await.unwrap_err());
        }
    }
    check("the log", &logs.text());
}

#[tokio::test]
async fn embeddings_repeat_no_secret() {
    let logs = Logs::default();
    let _listening = logs.listen();
    let server = quoting(400, false);
    let endpoint = format!("{}/v1?key={}", server.endpoint, secret("query"));
    let builder = OpenAiEmbeddings::builder(endpoint, "m")
        .api_key(Secret::from(secret("key")))
        .header("x-shown", secret("header"))
        .max_attempts(1);
    check("a builder", &format!("{builder:?}"));
    let client = builder.build().unwrap();
    check("a client", &format!("{client:?}"));
    let refused = client
        .embed(EmbeddingCall::new(["a".to_owned()], CallContext::new("s")))
        .await;
    check_error("an error", &refused.unwrap_err());
    check("the log", &logs.text());
}

#[test]
fn settings_show_no_secret() {
    let logs = Logs::default();
    let _listening = logs.listen();
    let text = format!(
        r#"
        [LLM.Balanced]
        Endpoint = "https://user:{}@host.example/v1?key={}"
        ApiKey = "{}"
        ModelId = "m"
        ExtraHeaders = {{ x-extra = "{}" }}
        [RabbitMq]
        HostName = "broker"
        Password = "{}"
        [Pulsar]
        Token = "{}"
        "#,
        secret("userinfo"),
        secret("query"),
        secret("key"),
        secret("header"),
        secret("password"),
        secret("token"),
    );
    // An endpoint with a user in it is refused, and not repeated.
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    check("a configuration", &format!("{config:?} {config:#?}"));
    check_error(
        "the settings of models",
        &LlmSettings::from_config(&config).unwrap_err(),
    );
    check_error("a gateway", &ModelGateway::from_config(&config).unwrap_err());
    let text = text.replace(&format!("user:{}@", secret("userinfo")), "");
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let mut settings = LlmSettings::from_config(&config).unwrap();
    check("the settings of models", &format!("{settings:?} {settings:#?}"));
    settings.balanced.endpoint = format!(
        "https://user:{}@host.example/v1?key={}",
        secret("userinfo"),
        secret("query")
    );
    check("the settings of models", &format!("{settings:?} {settings:#?}"));
    let broker = RabbitMqSettings::read(&config, Path::new("/")).unwrap();
    check("the settings of a broker", &format!("{broker:?}"));
    let broker = PulsarSettings::read(&config, Path::new("/")).unwrap();
    check("the settings of a broker", &format!("{broker:?}"));
    for wrong in [
        text.replace("ApiKey = \"", "ApiKey = \" \\n"),
        text.replace("ModelId = \"m\"", "ModelId = 7"),
        text.replace("Password = ", "Password = 7 #"),
        text.replace("[RabbitMq]", "[RabbitMq"),
        text.replace("Token = ", "Token = 7 #"),
        text.replace("HostName = \"broker\"", &format!("Port = \"{}\"", secret("port"))),
    ] {
        let read = Config::new()
            .with_text("agent.toml", &wrong)
            .map_err(|error| check_error("a file", &error));
        let Ok(config) = read else { continue };
        let _ = ModelGateway::from_config(&config).map_err(|error| check_error(&wrong, &error));
        let _ = RabbitMqSettings::read(&config, Path::new("/")).map_err(|error| check_error("a broker", &error));
        let _ = PulsarSettings::read(&config, Path::new("/")).map_err(|error| check_error("a broker", &error));
    }
    check("the log", &logs.text());
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_reported_without_its_password() {
    let logs = Logs::default();
    let _listening = logs.listen();
    for url in [
        format!("amqp://agent:{}@127.0.0.1:9/team", secret("password")),
        format!(
            "amqp://agent:{}@127.0.0.1:9/team?auth_mechanism={}",
            secret("password"),
            secret("query")
        ),
        format!("amqp://agent:{}@[broken/%zz", secret("password")),
        format!("http://agent:{}@127.0.0.1", secret("password")),
    ] {
        match RabbitMqSettings::from_url(&url) {
            Err(error) => check_error("a URL", &error),
            Ok(settings) => {
                check("settings", &format!("{settings:?} {settings:#?}"));
                check_error("a connection", &RabbitMqBus::connect(settings).await.unwrap_err());
            }
        }
    }
    check("the log", &logs.text());
}

#[test]
fn a_message_shows_neither_its_body_nor_the_values_of_its_properties() {
    let mut envelope = MessageEnvelope::new("note", secret("body"));
    envelope.headers.insert("authorization".into(), secret("property"));
    check("a message", &format!("{envelope:?} {envelope:#?}"));
    let delivery = Delivery::new(Arc::<str>::from("topic"), Arc::new(envelope)).with_trust(Trust::User);
    check("a delivery", &format!("{delivery:?}"));
}

/// A person writes over the broker with secrets in the properties, a model's server quotes its
/// request, and a message is refused: nothing of that is repeated.
#[tokio::test]
async fn over_a_broker_nothing_secret_is_repeated() {
    let Some(exchange) = Exchange::open().await else { return };
    let logs = Logs::default();
    let _listening = logs.listen();
    let folder = tempfile::tempdir().unwrap();
    let server = quoting(400, false);
    let (_, client) = clients(&server.endpoint).remove(0);
    let bus = Arc::new(RabbitMqBus::connect(exchange.settings.clone()).await.unwrap());
    let host = AgentHost::builder("clerk")
        .chat(client)
        .data_dir(folder.path())
        .shared_bus(bus.clone())
        .serve_users()
        .build()
        .unwrap();
    host.start().await.unwrap();
    let with_properties = |message: MessageEnvelope| {
        let message = message.with_header("authorization", secret("property"));
        message.with_header("x-api-key", secret("key-property"))
    };

    let asking = RequestClient::new(exchange.connect().await, "desk");
    let message = MessageEnvelope::of(&UserMessage::new("s", "Hi!")).unwrap();
    let reply = asking.call("user.message", with_properties(message)).await.unwrap();
    check("a reply", &format!("{reply:?} {:?}", reply.headers));
    check("a reply", &String::from_utf8_lossy(&reply.body));

    let poison = MessageEnvelope::new("unknown.Type", secret("body")).with_id("poison");
    bus.publish("user.message", Arc::new(with_properties(poison)))
        .await
        .unwrap();
    until("the message is a dead letter", async || {
        !bus.dead_letters(9).await.unwrap().is_empty()
    })
    .await;
    let letters = bus.dead_letters(9).await.unwrap();
    check("a dead letter", &format!("{letters:?} {letters:#?}"));
    assert_eq!(letters.len(), 1);
    check("the reason of a dead letter", &letters[0].last_error);

    let url = exchange
        .url
        .replace("amqp://", &format!("amqp://guest:{}@", secret("password")));
    let refused = RabbitMqBus::connect(RabbitMqSettings::from_url(&url).unwrap()).await;
    check_error("a refused connection", &refused.unwrap_err());
    check(
        "a bus",
        &format!("{bus:?} {:?} {:#?}", exchange.settings, exchange.settings),
    );
    host.shutdown(std::time::Duration::from_secs(5)).await;
    bus.delete_topology().await.unwrap();
    exchange.delete(&[]).await;
    check("the files", &files(folder.path()));
    check("the log", &logs.text());
}

/// All that the files of a folder hold, in one text.
fn files(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&files(&path))
        } else {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()))
        }
    }
    text
}

#[tokio::test]
async fn a_turn_leaves_no_secret_in_files_logs_and_replies() {
    let logs = Logs::default();
    let _listening = logs.listen();
    let folder = tempfile::tempdir().unwrap();
    for fails in [false, true] {
        let answer = move |raw: &str, _: &Value| {
            if fails {
                (400, json!({"error": {"message": raw}}).to_string())
            } else {
                dialects::says(raw, "Yes.")
            }
        };
        let server = ModelServer::start(answer);
        let (_, client) = clients(&server.endpoint).remove(0);
        let host = AgentHost::in_memory()
            .chat(client)
            .data_dir(folder.path())
            .build()
            .unwrap();
        let settings = ModelSettings::new().with_extra_header("x-request", secret("request-header"));
        let request = TurnRequest::new("s", format!("m{fails}"), "hi").with_model_settings(settings);
        check("a request", &format!("{request:?}"));
        let outcome = host.agent().run(request).await.unwrap();
        assert_eq!(outcome.is_answer(), !fails, "{outcome:?}");
        check("a reply", &format!("{outcome:?}"));
        host.shutdown(std::time::Duration::from_secs(5)).await;
    }
    let written = files(folder.path());
    assert!(written.contains("Yes."), "the files are those of the turns");
    check("the files", &written);
    check("the log", &logs.text());
}
