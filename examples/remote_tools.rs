//! A tool in another program: a worker serves it, an agent calls it, and a bus connects them.
//!
//! `cargo run --example remote_tools`: no key needed. Both programs run in this one process, so
//! that there is nothing to install; with a broker, only the line that creates the bus differs.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot::message::RequestClient;
use rockbot::prelude::*;
use rockbot::tool::{RemoteToolExecutor, ToolRegistration, remote_tool};

// The contract of the tool, shared by both programs: its arguments and the description that the
// model reads.
/// Tells how many of a product are in stock.
#[derive(Deserialize, JsonSchema)]
struct StockRequest {
    /// The product.
    product: String,
}

/// The products that were asked for, as the worker recorded them.
type Asked = Arc<Mutex<Vec<String>>>;

/// Builds the worker: a host without users, whose tools are called over the bus.
fn warehouse(bus: Arc<dyn Bus>, asked: &Asked) -> Result<AgentHost, BoxError> {
    let stock = |asked: ToolState<Asked>, StockRequest { product }: StockRequest| async move {
        let in_stock = match product.as_str() {
            "chairs" => 7,
            "tables" => 2,
            _ => return Err(ToolError::invalid_arguments("there are chairs and tables")),
        };
        if let Ok(mut asked) = asked.lock() {
            asked.push(product);
        }
        Ok(format!("{in_stock} in stock"))
    };
    let stock = stateful_tool("stock", asked.clone(), stock).pure();
    let host = AgentHost::builder("warehouse")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .tool(stock)
        .serve_tools()
        .build()?;
    Ok(host)
}

/// Builds the agent, which has the tool as if it were its own.
fn shop(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let mut registration = ToolRegistration::of::<StockRequest>("stock");
    // The effect decides what a missing answer means: a pure call may simply be repeated.
    registration.effect = Effect::Pure;
    let client = RequestClient::new(bus.clone(), "shop").with_time_limit(Duration::from_secs(10));
    let stock = remote_tool(registration, RemoteToolExecutor::new(Arc::new(client)));
    let host = AgentHost::builder("shop")
        .chat(ChatTiers::from_env_or_offline()?)
        .shared_bus(bus)
        .tool(stock)
        .build()?;
    Ok(host)
}

pub(crate) async fn run(out: &mut impl Write) -> Result<(), BoxError> {
    // The line that changes: with a broker, each of the two programs would connect to it.
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());

    let asked = Asked::default();
    let warehouse = warehouse(bus.clone(), &asked)?;
    let shop = shop(bus.clone())?;
    warehouse.start().await?;
    shop.start().await?;

    for question in [
        "How many \"chairs\" are in stock?",
        "And how is the stock of \"lamps\"?",
    ] {
        let answer = shop.agent().ask("my-session", question).await?;
        writeln!(out, "> {question}\n{answer}\n")?;
    }
    // The worker goes away: the model is told that the tool is unavailable, and the turn still ends
    // with an answer.
    warehouse.shutdown(Duration::from_secs(5)).await;
    let question = "Is there any stock of \"tables\"?";
    let answer = shop.agent().ask("my-session", question).await?;
    writeln!(out, "> {question}\n{answer}\n")?;

    let asked = asked.lock().map_err(|_| "the worker's notes are damaged")?.join(", ");
    writeln!(out, "the warehouse was asked for: {asked}")?;
    shop.shutdown(Duration::from_secs(5)).await;
    // The program that shares a bus between hosts closes it.
    let _ = bus.close(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&mut io::stdout()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
