//! Tasks whose answer stands somewhere in a document of 30 000 or 90 000 characters.

use serde_json::json;

use super::super::task::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let task = |document: &str, id, asks| {
        Task::new(Kind::LongResults, id, asks).calls("read_document", json!({ "name": { "has": document } }))
    };
    vec![
        task(
            "handbook",
            "long-handbook",
            "What is the access code of the north gate? It is in the document handbook.",
        )
        .states(&["4711"]),
        task(
            "minutes",
            "long-minutes",
            "Who was elected treasurer? Look into the document minutes.",
        )
        .states(&["sandoval"]),
        task(
            "contract",
            "long-contract",
            "How long is the tenant's notice period? It is in the document contract.",
        )
        .states(&["395"]),
        task(
            "logbook",
            "long-logbook",
            "Which technician replaced pump 6? It is in the document logbook.",
        )
        .states(&["bartok"]),
        task(
            "inventory",
            "long-inventory",
            "How many telescopes are in the cellar? It is in the document inventory.",
        )
        .states(&["2839"]),
        task(
            "report",
            "long-report",
            "How many tonnes of cherries were harvested? It is in the document report.",
        )
        .states(&["6150"]),
        task(
            "guidelines",
            "long-guidelines",
            "What is the daily allowance in Quito? Look into the document guidelines.",
        )
        .states(&["985"]),
        task(
            "archive",
            "long-archive",
            "Who built the lighthouse? It is in the document archive.",
        )
        .states(&["quill"]),
        task(
            "manual",
            "long-manual",
            "At which pressure does the safety valve open? It is in the document manual.",
        )
        .states(&["5325"]),
        task(
            "survey",
            "long-survey",
            "Which bridge of the county is the oldest? It is in the document survey.",
        )
        .states(&["wexcombe"]),
        task(
            "ledger",
            "long-ledger",
            "How high was the grant for the observatory? It is in the document ledger.",
        )
        .states(&["9440"]),
    ]
}
