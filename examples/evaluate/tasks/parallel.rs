//! Tasks with parts that do not depend on each other: done one after the other, in one answer with
//! several calls, or delegated.
//!
//! The calls of delegated work are not those of the turn, so these tasks are checked by their facts
//! alone, which stand in results of tools and nowhere else.

use super::super::task::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let task = |id, asks| Task::new(Kind::Parallel, id, asks);
    vec![
        task(
            "parallel-weather",
            "How many degrees is it in Oslo, Cairo, Tokyo and Dublin? Look at each city.",
        )
        .states(&["7"])
        .states(&["33"])
        .states(&["26"])
        .states(&["11"]),
        task(
            "parallel-products",
            "For chair, desk, shelf and mirror: how many are in stock, and what does one cost?",
        )
        .states(&["12"])
        .states(&["310"])
        .states(&["85"])
        .states(&["58"]),
        task(
            "parallel-contacts",
            "List the phone extensions of Ada, Ben, Carla and Dmitri, and say where parcel KX-207 is.",
        )
        .states(&["214"])
        .states(&["377"])
        .states(&["465"])
        .states(&["598"])
        .states(&["lisbon"]),
        task(
            "parallel-two-documents",
            "What is the access code of the north gate in the document handbook, and who was elected treasurer in the \
             document minutes?",
        )
        .states(&["4711"])
        .states(&["sandoval"]),
        task(
            "parallel-three-documents",
            "Read the documents contract, logbook and inventory. How long is the tenant's notice period, who replaced \
             pump 6, and how many telescopes are there?",
        )
        .states(&["395"])
        .states(&["bartok"])
        .states(&["2839"]),
        task(
            "parallel-four-documents",
            "Read the documents handbook, contract, inventory and ledger. What are the code of the north gate, the \
             tenant's notice period, the number of telescopes, and the grant for the observatory?",
        )
        .states(&["4711"])
        .states(&["395"])
        .states(&["2839"])
        .states(&["9440"]),
    ]
}
