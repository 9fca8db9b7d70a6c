//! Messages of one's own: a type, two kinds of handlers, a tower layer in front of them, and what becomes of messages
//! that nobody can deal with.
//!
//! `cargo run --example handlers`: no key needed, no model is asked.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, Ready, ready};
use rockbot::core::messaging::{
    DeadLetters, Disposition, ErrorReply, RequestClient, RequestError, RetryPolicy, SubscribeOptions,
};
use rockbot::prelude::*;
use tower::{Layer, Service};

/// A message: its name on the wire, which other programs and languages use, too, and where it is published.
#[derive(Serialize, Deserialize)]
struct Invoice {
    number: u32,
    cents: i64,
}

impl Message for Invoice {
    const TYPE: &'static str = "billing.Invoice";
    const TOPIC: Option<&'static str> = Some("billing.invoice");
}

/// A question, and its answer below.
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

/// A handler with state of its own. `Ok` means done; what kind of error it is decides what becomes of the message.
struct Bookkeeper {
    balance: Arc<AtomicI64>,
}

#[async_trait]
impl MessageHandler<Invoice> for Bookkeeper {
    async fn handle(&self, invoice: Invoice, _: &MessageContext) -> Result<(), HandlerError> {
        if invoice.cents < 0 {
            // It will never be right: nobody needs to try again.
            return Err(HandlerError::dead_letter("an invoice cannot be negative"));
        }
        if invoice.number == 13 {
            // What `?` makes of any error, too: the message is delivered again, as often as its subscription says.
            return Err(HandlerError::retry("invoice 13 is on fire"));
        }
        self.balance.fetch_add(invoice.cents, Ordering::Relaxed);
        Ok(())
    }
}

/// A tower layer: only messages with this header get through. As every layer it stands in front of all handlers.
#[derive(Clone, Copy)]
struct RequireHeader(&'static str);

impl<S> Layer<S> for RequireHeader {
    type Service = HeaderRequired<S>;

    fn layer(&self, inner: S) -> Self::Service {
        HeaderRequired { inner, header: self.0 }
    }
}

/// What [`RequireHeader`] makes of a service.
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
            // A layer that does not call on decides alone.
            false => {
                let reason = format!("the header `{}` is missing", self.header);
                Either::Right(ready(Ok(Disposition::dead_letter(reason))))
            }
        }
    }
}

/// The header that the layer wants to see.
const CUSTOMER: &str = "x-customer";

fn build(bus: &InProcessBus) -> Result<AgentHost, BoxError> {
    let balance = Arc::new(AtomicI64::new(0));
    let bookkeeper = Bookkeeper {
        balance: balance.clone(),
    };
    // The other kind of handler is an async closure. This one answers: with a balance, or with why there is none.
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
    // One message at a time, in the order in which they came: a question counts all invoices before it.
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

/// An answer that says why there is none: whoever asked gets it as an error.
fn no_books_in(currency: &str) -> ErrorReply {
    ErrorReply {
        code: "unknown_currency".to_owned(),
        message: format!("there are no books in {currency}"),
        is_retryable: false,
    }
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

    // Two good ones, one that fails every time, and four that nobody can ever deal with.
    for (number, cents) in [(11, 1900), (12, 2300), (13, 500), (14, -700)] {
        send(&bus, MessageEnvelope::of(&Invoice { number, cents })?).await?;
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

    writeln!(out, "nobody could deal with these:")?;
    for letter in bus.dead_letters(100).await? {
        let (envelope, reason, why) = (&letter.envelope, letter.reason, &letter.last_error);
        let (kind, source) = (&envelope.message_type, &envelope.source);
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
