//! Custom messages: a type, two kinds of handlers, a tower layer in front of them, and dead
//! letters for what cannot be handled.
//!
//! `cargo run --example handlers`: no key needed, no model is asked.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, Ready, ready};
use rockbot::message::{
    DeadLetters, Disposition, ErrorReply, RequestClient, RequestError, RetryPolicy, SubscribeOptions,
};
use rockbot::prelude::*;
use tower::{Layer, Service};

/// A message: its type on the wire, which programs in other languages use too, and its topic.
#[derive(Serialize, Deserialize)]
struct Invoice {
    number: u32,
    cents: i64,
}

impl Message for Invoice {
    const TYPE: &'static str = "billing.Invoice";
    const TOPIC: Option<&'static str> = Some("billing.invoice");
}

/// A question; its answer is below.
#[derive(Serialize, Deserialize)]
struct BalanceRequest {
    currency: String,
}

impl Message for BalanceRequest {
    const TYPE: &'static str = "billing.BalanceRequest";
    const TOPIC: Option<&'static str> = Some("billing.balance");
}

#[derive(Serialize, Deserialize)]
struct Balance {
    cents: i64,
}

impl Message for Balance {
    const TYPE: &'static str = "billing.Balance";
}

/// A handler with state. `Ok` acknowledges the message; the kind of an error decides between
/// retry and dead letter.
struct Bookkeeper {
    balance: Arc<AtomicI64>,
}

#[async_trait]
impl MessageHandler<Invoice> for Bookkeeper {
    async fn handle(&self, invoice: Invoice, _: &MessageContext) -> Result<(), BoxError> {
        if invoice.cents < 0 {
            // A permanent failure: a retry would not help.
            return Err(HandlerError::dead_letter("an invoice cannot be negative").into());
        }
        if invoice.number == 13 {
            // The same happens to any error that `?` returns: the message is redelivered as often as its
            // subscription allows.
            return Err(HandlerError::retry("invoice 13 is on fire").into());
        }
        self.balance.fetch_add(invoice.cents, Ordering::Relaxed);
        Ok(())
    }
}

/// A tower layer that only passes messages with this header. Like every layer, it wraps all
/// handlers.
#[derive(Clone, Copy)]
struct RequireHeader(&'static str);

impl<S> Layer<S> for RequireHeader {
    type Service = HeaderRequired<S>;

    fn layer(&self, inner: S) -> Self::Service {
        HeaderRequired { inner, header: self.0 }
    }
}

/// The service that [`RequireHeader`] produces.
#[derive(Clone)]
struct HeaderRequired<S> {
    inner: S,
    header: &'static str,
}

impl<S> Service<MessageContext> for HeaderRequired<S>
where
    S: Service<MessageContext, Response = Disposition>,
{
    type Response = Disposition;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Disposition, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, message: MessageContext) -> Self::Future {
        match message.envelope().headers.contains_key(self.header) {
            true => Either::Left(self.inner.call(message)),
            // A layer that does not call the inner service decides the outcome itself.
            false => {
                let reason = format!("the header `{}` is missing", self.header);
                Either::Right(ready(Ok(Disposition::dead_letter(reason))))
            }
        }
    }
}

/// The header that the layer requires.
const CUSTOMER: &str = "x-customer";

fn build(bus: &InProcessBus) -> Result<AgentHost, BoxError> {
    let balance = Arc::new(AtomicI64::new(0));
    let bookkeeper = Bookkeeper {
        balance: balance.clone(),
    };
    // The other kind of handler is an async closure. This one answers with a balance, or with an
    // error.
    let tell = move |question: BalanceRequest, cx: MessageContext| {
        let cents = balance.load(Ordering::Relaxed);
        async move {
            let answered = match question.currency.as_str() {
                "EUR" => cx.reply(&Balance { cents }).await,
                other => cx.reply(&no_books_in(other)).await,
            };
            answered.map(drop)
        }
    };
    // One message at a time, in order: a question counts all invoices before it.
    let options = SubscribeOptions::new().with_retry(RetryPolicy::never());
    let host = AgentHost::builder("clerk")
        .chat(ChatTiers::from_env_or_offline()?)
        .bus(bus.clone())
        .subscribe_with("billing.#", options)
        .handle(bookkeeper)
        .handle(tell)
        .layer(RequireHeader(CUSTOMER))
        .build()?;
    Ok(host)
}

/// Returns an error answer, which the client receives as a typed error.
fn no_books_in(currency: &str) -> ErrorReply {
    ErrorReply::new("unknown_currency", format!("there are no books in {currency}"))
}

/// Publishes a message as the customer Ada does.
async fn send(bus: &InProcessBus, envelope: MessageEnvelope) -> Result<(), BoxError> {
    let envelope = envelope.with_source("shop").with_header(CUSTOMER, "ada");
    bus.publish("billing.invoice", envelope.into()).await?;
    Ok(())
}

/// Asks for the balance, and waits for the answer.
async fn ask(client: &RequestClient, currency: &str) -> Result<Balance, RequestError> {
    let currency = currency.to_owned();
    let question = MessageEnvelope::of(&BalanceRequest { currency })?.with_header(CUSTOMER, "ada");
    Ok(client.call("billing.balance", question).await?.payload()?)
}

pub(crate) async fn run(out: &mut impl Write) -> Result<(), BoxError> {
    let bus = InProcessBus::new();
    let host = build(&bus)?;
    host.start().await?;

    // Two valid ones, one that fails every time, and four that cannot be handled at all.
    for (number, cents) in [(11, 1900), (12, 2300), (13, 500), (14, -700)] {
        bus.send("shop", &Invoice { number, cents })
            .header(CUSTOMER, "ada")
            .await?;
    }
    send(&bus, MessageEnvelope::new("billing.Invoice", r#"{"number":15}"#)).await?;
    send(&bus, MessageEnvelope::new("billing.Refund", "{}")).await?;
    bus.send("stranger", &Invoice { number: 16, cents: 1 }).await?;

    let client = RequestClient::new(Arc::new(bus.clone()), "auditor").with_time_limit(Duration::from_secs(10));
    for currency in ["EUR", "XYZ"] {
        match ask(&client, currency).await {
            Ok(Balance { cents }) => writeln!(out, "the balance in {currency} is {cents} cents")?,
            Err(error) => writeln!(out, "there is no balance in {currency}: {error}")?,
        }
    }

    writeln!(out, "dead letters:")?;
    for letter in bus.dead_letters(100).await? {
        let envelope = &letter.envelope;
        let reason = letter.reason;
        let why = &letter.last_error;
        let kind = &envelope.message_type;
        let source = &envelope.source;
        writeln!(out, "- {kind} from {source}: {reason:?}, {why}")?;
    }
    host.shutdown(Duration::from_secs(5)).await;
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
