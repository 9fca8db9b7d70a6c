//! Tasks with more than one call: in parallel, or one that needs another's result.

use serde_json::json;

use super::super::task::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let task = |id, asks| Task::new(Kind::SeveralCalls, id, asks);
    let city = |name: &str| json!({ "city": { "has": name } });
    let product = |name: &str| json!({ "product": name });
    vec![
        task(
            "several-weather",
            "How many degrees is it in Rome, and how many in Dublin?",
        )
        .calls("get_weather", city("rome"))
        .calls("get_weather", city("dublin"))
        .states(&["21"])
        .states(&["11"]),
        task(
            "several-warmest",
            "Which is warmest now: Lima, Paris or Tokyo? Say how warm it is there.",
        )
        .calls("get_weather", city("lima"))
        .calls("get_weather", city("paris"))
        .calls("get_weather", city("tokyo"))
        .states(&["tokyo"])
        .states(&["26"]),
        task("several-lamp", "How many lamps are in stock, and what does one cost?")
            .calls("get_stock", product("lamp"))
            .calls("get_price", product("lamp"))
            .states(&["3"])
            .states(&["25"]),
        task("several-total", "What do a chair and a shelf cost together?")
            .calls("get_price", product("chair"))
            .calls("get_price", product("shelf"))
            .states(&["134"]),
        task(
            "several-stock",
            "Of which do we have more, chairs or desks? Say how many of each.",
        )
        .calls("get_stock", product("chair"))
        .calls("get_stock", product("desk"))
        .states(&["12"])
        .states(&["41"]),
        task("several-extensions", "Give me the extensions of Ada and Dmitri.")
            .calls("find_contact", json!({ "name": { "has": "ada" } }))
            .calls("find_contact", json!({ "name": { "has": "dmitri" } }))
            .states(&["214"])
            .states(&["598"]),
        task(
            "several-mail",
            "Send Dmitri a mail with the subject \"Keys\" that says: the keys are at the reception.",
        )
        .calls("find_contact", json!({ "name": { "has": "dmitri" } }))
        .calls(
            "send_mail",
            json!({
                "to": "dmitri.petrov@example.com",
                "subject": { "has": "keys" },
                "body": { "has": "reception" },
            }),
        ),
        task("several-price-dollars", "What does a sofa cost in US dollars?")
            .calls("get_price", product("sofa"))
            .calls("convert_currency", json!({ "amount": 720, "from": "EUR", "to": "USD" }))
            .states(&["900"]),
        task("several-parcels", "Where are my parcels AB-100 and ZR-951?")
            .calls("track_parcel", json!({ "number": "AB-100" }))
            .calls("track_parcel", json!({ "number": "ZR-951" }))
            .states(&["hamburg"])
            .states(&["geneva"]),
        task(
            "several-note-price",
            "Look up what a mirror costs and take a note of the price.",
        )
        .calls("get_price", product("mirror"))
        .calls("take_note", json!({ "text": { "has": "64" } })),
        task(
            "several-notes",
            "Take two notes for me: first \"call the bank\", then \"water the plants\".",
        )
        .calls("take_note", json!({ "text": { "has": "bank" } }))
        .calls("take_note", json!({ "text": { "has": "plants" } })),
    ]
}
