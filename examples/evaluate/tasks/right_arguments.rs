//! Tasks with an obvious tool whose arguments must be derived from the message: other forms,
//! other words, several values.

use serde_json::json;

use super::super::task::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let task = |id, asks| Task::new(Kind::RightArguments, id, asks);
    let event = |title: &str, date: &str, time: &str| json!({ "title": { "has": title }, "date": date, "time": time });
    vec![
        task(
            "arguments-date",
            "Create the event \"Dentist\" on April 3rd, 2026 at half past two in the afternoon.",
        )
        .calls("create_event", event("dentist", "2026-04-03", "14:30")),
        task(
            "arguments-evening",
            "Create the event \"Concert\" on 17 July 2026 at 8 pm.",
        )
        .calls("create_event", event("concert", "2026-07-17", "20:00")),
        task(
            "arguments-morning",
            "Create the event \"Run\" at a quarter to seven in the morning on 1 June 2026.",
        )
        .calls("create_event", event("run", "2026-06-01", "06:45")),
        // These two need today's date, which only a briefing provides.
        task(
            "arguments-tomorrow",
            "Create the event \"Haircut\" for tomorrow at 15:00.",
        )
        .calls("create_event", event("haircut", "2026-03-11", "15:00")),
        task(
            "arguments-friday",
            "Create the event \"Review\" for this week's Friday at 09:30.",
        )
        .calls("create_event", event("review", "2026-03-13", "09:30")),
        task("arguments-yen", "What are twelve thousand Japanese yen in euros?")
            .calls(
                "convert_currency",
                json!({ "amount": 12000, "from": "JPY", "to": "EUR" }),
            )
            .states(&["75"]),
        task(
            "arguments-dollars",
            "I have 62.50 dollars. How many British pounds is that?",
        )
        .calls(
            "convert_currency",
            json!({ "amount": 62.5, "from": "USD", "to": "GBP" }),
        )
        .states(&["40"]),
        task(
            "arguments-correction",
            "What does a chair cost? No, wait, I mean a shelf.",
        )
        .calls("get_price", json!({ "product": "shelf" }))
        .states(&["85"]),
        task("arguments-plural", "How many sofas are in stock?")
            .calls("get_stock", json!({ "product": "sofa" }))
            .states(&["2"]),
        task("arguments-capital", "How is the weather in the capital of Kenya?")
            .calls("get_weather", json!({ "city": { "has": "nairobi" } }))
            .states(&["24", "wind", "windy"]),
        task(
            "arguments-mail",
            "Send a mail to ben.okafor@example.com with the subject \"Invoice 881\" and ask him to pay it by Friday.",
        )
        .calls(
            "send_mail",
            json!({ "to": "ben.okafor@example.com", "subject": { "has": "invoice 881" }, "body": { "has": "friday" } }),
        ),
    ]
}
