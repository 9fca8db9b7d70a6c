//! Tasks that need no tool: the model knows the answer, was just told it, or cannot do what is
//! asked.

use super::super::task::{Kind, Task};

pub(super) fn tasks() -> Vec<Task> {
    let task = |id, asks| Task::new(Kind::NoTool, id, asks);
    vec![
        task("none-capital", "What is the capital of France?").states(&["paris"]),
        task("none-sum", "What is 17 plus 25?").states(&["42"]),
        task("none-opposite", "What is the opposite of hot? One word.").states(&["cold"]),
        task("none-days", "How many days does a week have?").states(&["7"]),
        task("none-told", "My dog is called Biscuit. What is my dog called?").states(&["biscuit"]),
        task("none-translate", "Translate the word \"house\" into Spanish.").states(&["casa"]),
        task("none-author", "Who wrote the play Hamlet?").states(&["shakespeare"]),
        task("none-thanks", "Thank you, that was all for today."),
        task("none-spell", "Spell the word \"cat\" backwards.").states(&["tac", "t-a-c", "t a c"]),
        task("none-chemistry", "Water consists of hydrogen and which other element?").states(&["oxygen"]),
        task("none-impossible", "Switch off the light in my kitchen.").admits(),
    ]
}
