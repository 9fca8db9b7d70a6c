//! Measures request and reply over a bus, for a harness that compares frameworks.
//!
//! Usage: `bus MODE INFLIGHT SECONDS`; `MODE` is `inproc`, or `amqp` for the RabbitMQ broker of
//! this machine, on exchanges and queues of its own. A whole host takes each question from the
//! bus, through three user layers, to a typed handler, whose typed answer is correlated with its
//! question. `amqp-floor` is the client crate alone with the same guarantees. Prints one JSON
//! line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rockbot_benches::amqp_floor::AmqpFloor;
use rockbot_benches::process_usage;
use rockbot_bus::rabbitmq::{RabbitMqBus, RabbitMqSettings};
use rockbot_core::messaging::{
    Bus, Disposition, Message, MessageContext, MessageEnvelope, RequestClient, SubscribeOptions,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::{IdSource as _, RandomIds};
use rockbot_host::AgentHost;
use rockbot_host::bus::InProcessBus;
use serde::{Deserialize, Serialize};
use tower::util::{MapRequestLayer, MapResponseLayer};

/// Size of the body of a question, and of its answer, in bytes.
const BODY: usize = 256;

/// Number of questions before the measurement begins.
const WARM_UP: usize = 50;

const TOPIC: &str = "bench.question";

#[derive(Clone, Serialize, Deserialize)]
struct Question {
    text: String,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    text: String,
}

impl Message for Question {
    const TYPE: &'static str = "bench.Question";
    const TOPIC: Option<&'static str> = Some(TOPIC);
}

impl Message for Answer {
    const TYPE: &'static str = "bench.Answer";
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, in_flight, seconds] = arguments.as_slice() else {
        fail("usage: bus MODE INFLIGHT SECONDS");
    };
    if !["inproc", "amqp", "amqp-floor"].contains(&mode.as_str()) {
        fail(&format!(
            "bus cannot measure `{mode}`: its modes are `inproc`, `amqp` and `amqp-floor`"
        ));
    }
    let in_flight: usize = in_flight.parse().unwrap_or_else(|_| fail("INFLIGHT is a whole number"));
    let seconds: f64 = seconds.parse().unwrap_or_else(|_| fail("SECONDS is a number"));

    let time = Duration::from_secs_f64(seconds);
    match mode.as_str() {
        "inproc" => return run(mode, Arc::new(InProcessBus::new()), in_flight, time).await,
        "amqp-floor" => return run_floor(in_flight, time).await,
        _ => {}
    }
    let bus = broker().await;
    run(mode, Arc::clone(&bus) as Arc<dyn Bus>, in_flight, time).await;
    bus.delete_topology().await.expect("the topology can be deleted");
    let _ = bus.close(Duration::ZERO).await;
}

/// Connects to the broker of this machine.
async fn broker() -> Arc<RabbitMqBus> {
    let mut settings = RabbitMqSettings::new();
    settings.exchange_name = format!("bench-{}", RandomIds.next_id());
    settings.dead_letter_exchange_name = format!("{}.dlx", settings.exchange_name);
    settings.queue_prefix.clone_from(&settings.exchange_name);
    Arc::new(RabbitMqBus::connect(settings).await.expect("a broker on this machine"))
}

async fn run(mode: &str, bus: Arc<dyn Bus>, in_flight: usize, time: Duration) {
    let host = host(Arc::clone(&bus), in_flight);
    host.start().await.expect("the host starts");
    let client = Arc::new(RequestClient::new(bus, "bench"));
    let question = Arc::new(question());
    let ask = move || {
        let client = Arc::clone(&client);
        let question = Arc::clone(&question);
        async move { ask_one(&client, &question).await }
    };
    measure(&format!("rockbot {mode}"), in_flight, time, ask).await;
    host.shutdown(Duration::from_secs(1)).await;
}

async fn run_floor(in_flight: usize, time: Duration) {
    let prefetch = u16::try_from(in_flight.saturating_mul(2)).unwrap_or(u16::MAX).max(10);
    let name = format!("bench-{}", RandomIds.next_id());
    let floor = AmqpFloor::open("amqp://127.0.0.1:5672", &name, prefetch).await;
    let floor = Arc::new(floor.expect("a broker on this machine"));
    let asked = Arc::clone(&floor);
    let body = Arc::new(vec![b'x'; BODY]);
    let ask = move || {
        let floor = Arc::clone(&asked);
        let body = Arc::clone(&body);
        async move { assert_eq!(floor.ask(&body).await.expect("an answer"), BODY) }
    };
    measure("lapin amqp", in_flight, time, ask).await;
    floor.delete().await.expect("the queue can be deleted");
}

fn fail(problem: &str) -> ! {
    eprintln!("{problem}");
    std::process::exit(2)
}

/// Creates a host that answers up to `concurrency` questions at a time.
fn host(bus: Arc<dyn Bus>, concurrency: usize) -> AgentHost {
    AgentHost::builder("bench")
        .chat(ScriptedModel::new())
        .shared_bus(bus)
        .subscribe_with(TOPIC, SubscribeOptions::new().with_concurrency(concurrency))
        .handle(|question: Question, cx: MessageContext| async move {
            let answer = Answer { text: question.text };
            cx.reply(&answer).await.map(drop)
        })
        .layer(MapRequestLayer::new(|cx: MessageContext| cx))
        .layer(MapResponseLayer::new(|verdict: Disposition| verdict))
        .layer(MapRequestLayer::new(|cx: MessageContext| cx))
        .build()
        .expect("the host can be built")
}

async fn ask_one(client: &RequestClient, question: &Question) {
    let answer: Answer = client.request(TOPIC, question).await.expect("an answer");
    assert_eq!(answer.text.len(), question.text.len());
}

fn question() -> Question {
    let empty = Question { text: String::new() };
    let around = MessageEnvelope::of(&empty)
        .expect("a question can be written")
        .body
        .len();
    Question {
        text: "x".repeat(BODY - around),
    }
}

/// Asks for `time`, `in_flight` questions at a time, and prints the cost.
async fn measure<F, Fut>(mode: &str, in_flight: usize, time: Duration, ask: F)
where
    F: Fn() -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    for _ in 0..WARM_UP {
        ask().await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (cpu, _) = process_usage();
    let started = Instant::now();
    let callers: Vec<_> = (0..in_flight)
        .map(|_| {
            let ask = ask.clone();
            let stop = Arc::clone(&stop);
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let asked = Instant::now();
                    ask().await;
                    latencies.push(asked.elapsed().as_nanos() as f64 / 1e3);
                }
                latencies
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for caller in callers {
        latencies.extend(caller.await.expect("a caller does not fail"));
    }
    let wall = started.elapsed().as_secs_f64();
    let cpu = process_usage().0 - cpu;
    latencies.sort_by(f64::total_cmp);
    let count = latencies.len() as f64;
    let at = |part: f64| round(latencies[((count - 1.0) * part) as usize], 10.0);
    let line = serde_json::json!({
        "mode": mode, "in_flight": in_flight, "rpc_per_s": (count / wall).round(),
        "cpu_us_per_rpc": round(cpu / count * 1e6, 100.0), "p50_us": at(0.5), "p99_us": at(0.99),
    });
    println!("{line}");
}

fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
