//! A tool in another program: a worker serves it, an agent calls it, and a bus is between them.
//!
//! `cargo run --example remote_tools`: no key needed. Both programs are in this one process, so that there is nothing
//! to install; on a broker only the line that makes the bus is another.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rockbot::core::messaging::RequestClient;
use rockbot::core::tool::{RemoteToolExecutor, ToolRegistration, remote_tool};
use rockbot::prelude::*;

// How the tool is called: the one thing that both programs know. What follows is for the model.
/// Tells how many of a product are in stock.
#[derive(Deserialize, JsonSchema)]
struct StockRequest {
    /// Which product.
    product: String,
}

/// Which products somebody asked for, as the worker wrote them down.
type Asked = Arc<Mutex<Vec<String>>>;

/// The worker: a host without users, whose tools others call over the bus.
fn warehouse(bus: Arc<dyn Bus>, asked: &Asked) -> Result<AgentHost, BoxError> {
    let stock = |asked: State<Asked>, StockRequest { product }: StockRequest| async move {
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

/// The agent: it has the tool as if it were its own.
fn shop(bus: Arc<dyn Bus>) -> Result<AgentHost, BoxError> {
    let mut registration = ToolRegistration::of::<StockRequest>("stock");
    // What a call changes decides what an answer that never comes means: this one may simply be asked for again.
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
    // The line that changes: here two programs would each connect to their broker.
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());

    let asked = Asked::default();
    let (warehouse, shop) = (warehouse(bus.clone(), &asked)?, shop(bus.clone())?);
    warehouse.start().await?;
    shop.start().await?;

    for question in [
        "How many \"chairs\" are in stock?",
        "And how is the stock of \"lamps\"?",
    ] {
        let answer = shop.agent().ask("my-session", question).await?;
        writeln!(out, "> {question}\n{answer}\n")?;
    }
    // The worker goes away, as workers do: the model is told what is wrong, and the turn ends all the same.
    warehouse.shutdown(Duration::from_secs(5)).await;
    let question = "Is there any stock of \"tables\"?";
    let answer = shop.agent().ask("my-session", question).await?;
    writeln!(out, "> {question}\n{answer}\n")?;

    let asked = asked.lock().map_err(|_| "the worker's notes are damaged")?.join(", ");
    writeln!(out, "the warehouse was asked for: {asked}")?;
    shop.shutdown(Duration::from_secs(5)).await;
    // Whoever shares a bus closes it.
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
