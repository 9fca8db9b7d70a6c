//! The tools that the tasks use. They answer from tables, so that a run can be repeated; mutating
//! tools only report success.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rockbot::prelude::*;

use super::calculator::calculator;
use super::documents::document;
use super::task::Fault;

/// Tells the weather in a city right now.
#[derive(Deserialize, JsonSchema)]
struct GetWeather {
    /// The city, such as `Rome`.
    city: String,
}

/// Tells how many pieces of a product are in stock.
#[derive(Deserialize, JsonSchema)]
struct GetStock {
    /// The product in the singular, such as `table`.
    product: String,
}

/// Tells the price of one piece of a product, in euros.
#[derive(Deserialize, JsonSchema)]
struct GetPrice {
    /// The product in the singular, such as `table`.
    product: String,
}

/// Finds the mail address and the phone extension of a colleague.
#[derive(Deserialize, JsonSchema)]
struct FindContact {
    /// The first name.
    name: String,
}

/// Converts an amount of money into another currency.
#[derive(Deserialize, JsonSchema)]
struct ConvertCurrency {
    amount: f64,
    /// The currency of the amount: EUR, USD, GBP or JPY.
    from: String,
    /// The currency that is wanted: EUR, USD, GBP or JPY.
    to: String,
}

/// Tells where a parcel is.
#[derive(Deserialize, JsonSchema)]
struct TrackParcel {
    /// The number of the parcel, such as `AB-100`.
    number: String,
}

/// Sends a mail.
#[derive(Deserialize, JsonSchema)]
struct SendMail {
    /// The mail address of the receiver.
    to: String,
    subject: String,
    body: String,
}

/// Puts an event into the user's calendar.
#[derive(Deserialize, JsonSchema)]
struct CreateEvent {
    title: String,
    /// The date as YYYY-MM-DD.
    date: String,
    /// The time as HH:MM, in 24 hours.
    time: String,
}

/// Writes a note into the user's notebook.
#[derive(Deserialize, JsonSchema)]
struct TakeNote {
    text: String,
}

/// Reads a document of the company, whole.
#[derive(Deserialize, JsonSchema)]
struct ReadDocument {
    /// The name of the document, such as `minutes`.
    name: String,
}

/// The mutating tools.
const CHANGING: [&str; 3] = ["send_mail", "create_event", "take_note"];

pub(crate) fn changes_something(tool: &str) -> bool {
    CHANGING.contains(&tool)
}

/// Returns `true` for a tool whose user relies on what it keeps or does.
pub(crate) fn keeps_something(tool: &str) -> bool {
    changes_something(tool) || tool == "save_memory"
}

/// Returns the tools of a conversation, besides those of memory.
pub(crate) fn everyday_tools() -> Vec<Tool> {
    let everyday = ["get_weather", "find_contact", "take_note"];
    let chosen = tools(None)
        .into_iter()
        .filter(|tool| everyday.contains(&tool.registration.name.as_str()));
    [calculator()].into_iter().chain(chosen).collect()
}

/// Returns all tools; `fault` names the one that fails.
pub(crate) fn tools(fault: Option<Fault>) -> Vec<Tool> {
    let world = Arc::new(World {
        fault,
        has_failed: AtomicBool::new(false),
    });
    let reading = [
        answering("get_weather", &world, |GetWeather { city }| weather(&city)),
        answering("get_stock", &world, |GetStock { product }| stock(&product)),
        answering("get_price", &world, |GetPrice { product }| price(&product)),
        answering("find_contact", &world, |FindContact { name }| contact(&name)),
        answering("convert_currency", &world, |money: ConvertCurrency| convert(&money)),
        answering("track_parcel", &world, |TrackParcel { number }| parcel(&number)),
        answering("read_document", &world, |ReadDocument { name }| read(&name)),
    ];
    let changing = [
        answering("send_mail", &world, |mail: SendMail| {
            Ok(format!(
                "Sent to {}: {} ({} bytes).",
                mail.to,
                mail.subject,
                mail.body.len()
            ))
        }),
        answering("create_event", &world, |event: CreateEvent| {
            Ok(format!("Created: {} on {} at {}.", event.title, event.date, event.time))
        }),
        answering("take_note", &world, |note: TakeNote| {
            Ok(format!("Noted: {}", note.text))
        }),
    ];
    reading.map(Tool::pure).into_iter().chain(changing).collect()
}

/// State shared by all tools of a run.
struct World {
    fault: Option<Fault>,
    has_failed: AtomicBool,
}

impl World {
    /// Returns `true` if the present call of `tool` fails.
    fn fails(&self, tool: &str) -> bool {
        match self.fault {
            Some(Fault::Once(name)) => name == tool && !self.has_failed.swap(true, Ordering::Relaxed),
            Some(Fault::Always(name)) => name == tool,
            None => false,
        }
    }
}

fn answering<A>(
    name: &'static str,
    world: &Arc<World>,
    answer: impl Fn(A) -> Result<String, ToolError> + Send + Sync + 'static,
) -> Tool
where
    A: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    let world = world.clone();
    tool(name, move |arguments: A| {
        let answer = if world.fails(name) {
            Err(ToolError::execution_failed("the service did not answer"))
        } else {
            answer(arguments)
        };
        std::future::ready(answer)
    })
    // The tasks measure models; a question would end each.
    .trusted_effect("a simulated service")
}

/// Looks up the row of a table under `key`, ignoring case.
fn row<'a, T>(table: &'a [(&str, T)], key: &str, what: &str) -> Result<&'a T, ToolError> {
    let found = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(key.trim()));
    found
        .map(|(_, row)| row)
        .ok_or_else(|| ToolError::execution_failed(format!("there is no {what} `{key}`")))
}

fn weather(city: &str) -> Result<String, ToolError> {
    const CITIES: [(&str, (i32, &str)); 8] = [
        ("Oslo", (7, "rain")),
        ("Rome", (21, "sunshine")),
        ("Lima", (18, "clouds")),
        ("Cairo", (33, "sunshine")),
        ("Paris", (14, "fog")),
        ("Tokyo", (26, "thunderstorms")),
        ("Dublin", (11, "drizzle")),
        ("Nairobi", (24, "wind")),
    ];
    let city = city.split(',').next().unwrap_or_default();
    let (degrees, sky) = row(&CITIES, city, "city")?;
    Ok(format!("{degrees} degrees Celsius, {sky}"))
}

/// Pieces in stock and the price of one in euros, by product.
const PRODUCTS: [(&str, (u32, u32)); 6] = [
    ("chair", (12, 49)),
    ("lamp", (3, 25)),
    ("desk", (41, 310)),
    ("shelf", (7, 85)),
    ("sofa", (2, 720)),
    ("mirror", (58, 64)),
];

fn stock(product: &str) -> Result<String, ToolError> {
    let (pieces, _) = row(&PRODUCTS, product, "product")?;
    Ok(format!("{pieces} in stock"))
}

fn price(product: &str) -> Result<String, ToolError> {
    let (_, euros) = row(&PRODUCTS, product, "product")?;
    Ok(format!("{euros} EUR"))
}

fn contact(name: &str) -> Result<String, ToolError> {
    const PEOPLE: [(&str, (&str, u32)); 4] = [
        ("Ada", ("ada.novak@example.com", 214)),
        ("Ben", ("ben.okafor@example.com", 377)),
        ("Carla", ("carla.ruiz@example.com", 465)),
        ("Dmitri", ("dmitri.petrov@example.com", 598)),
    ];
    let name = name.split_whitespace().next().unwrap_or_default();
    let (address, extension) = row(&PEOPLE, name, "colleague")?;
    Ok(format!("{address}, extension {extension}"))
}

fn convert(money: &ConvertCurrency) -> Result<String, ToolError> {
    const FOR_A_EURO: [(&str, f64); 4] = [("EUR", 1.0), ("USD", 1.25), ("GBP", 0.8), ("JPY", 160.0)];
    let [from, to] = [&money.from, &money.to].map(|name| row(&FOR_A_EURO, name, "currency"));
    let converted = money.amount / from? * to?;
    Ok(format!(
        "{} {}",
        (converted * 100.0).round() / 100.0,
        money.to.to_uppercase()
    ))
}

fn parcel(number: &str) -> Result<String, ToolError> {
    const PARCELS: [(&str, &str); 3] = [
        ("AB-100", "in Hamburg, due on Thursday"),
        ("KX-207", "in Lisbon, due on Monday"),
        ("ZR-951", "at the customs office in Geneva"),
    ];
    row(&PARCELS, number, "parcel").map(|place| (*place).to_owned())
}

fn read(name: &str) -> Result<String, ToolError> {
    document(name).ok_or_else(|| ToolError::execution_failed(format!("there is no document `{name}`")))
}
