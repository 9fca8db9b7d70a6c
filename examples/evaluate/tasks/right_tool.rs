//! Tasks that one of ten tools answers, without naming it.

use serde_json::json;

use super::super::task::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let task = |id, asks| Task::new(Kind::RightTool, id, asks);
    vec![
        task("tool-warm", "How warm is it in Cairo?")
            .calls("get_weather", json!({ "city": { "has": "cairo" } }))
            .states(&["33"]),
        task("tool-umbrella", "Do I need an umbrella in Oslo now? Say why.")
            .calls("get_weather", json!({ "city": { "has": "oslo" } }))
            .states(&["rain", "raining", "rainy"]),
        task("tool-left", "How many mirrors do we have left?")
            .calls("get_stock", json!({ "product": { "has": "mirror" } }))
            .states(&["58"]),
        task("tool-cost", "What does a desk cost?")
            .calls("get_price", json!({ "product": { "has": "desk" } }))
            .states(&["310"]),
        task("tool-reach", "At which extension can I call Ben?")
            .calls("find_contact", json!({ "name": { "has": "ben" } }))
            .states(&["377"]),
        task("tool-address", "What is Carla's mail address?")
            .calls("find_contact", json!({ "name": { "has": "carla" } }))
            .states(&["carla.ruiz@example.com"]),
        task("tool-pounds", "How much is 200 EUR in GBP?")
            .calls("convert_currency", json!({ "amount": 200, "from": "EUR", "to": "GBP" }))
            .states(&["160"]),
        task("tool-parcel", "Where is my parcel KX-207?")
            .calls("track_parcel", json!({ "number": "KX-207" }))
            .states(&["lisbon"]),
        task("tool-note", "Write down for me: buy oat milk.")
            .calls("take_note", json!({ "text": { "has": "oat milk" } })),
        task(
            "tool-calendar",
            "Enter \"Board meeting\" on 2026-05-04 at 10:00 in my calendar.",
        )
        .calls(
            "create_event",
            json!({ "title": { "has": "board meeting" }, "date": "2026-05-04", "time": "10:00" }),
        ),
        task(
            "tool-mail",
            "Tell ada.novak@example.com by mail, with the subject Lunch, that lunch is at noon.",
        )
        .calls(
            "send_mail",
            json!({ "to": "ada.novak@example.com", "subject": { "has": "lunch" }, "body": { "has": "noon" } }),
        ),
    ]
}
