//! Conversations of four to eight everyday requests, with a calculator, the weather, colleagues,
//! notes and memory.

use serde_json::json;

use super::super::task::{Kind, Task};

/// Returns the requests of a conversation.
fn conversation(name: &'static str, turns: impl IntoIterator<Item = Task>) -> Vec<Task> {
    let named = |(mut turn, number): (Task, usize)| {
        turn.id = format!("{name}-{number}");
        turn.conversation = Some(name);
        turn
    };
    turns.into_iter().zip(1..).map(named).collect()
}

/// A request that any answer suits.
fn says(words: &'static str) -> Task {
    Task::new(Kind::Everyday, "", words)
}

/// A request whose answer states one of `facts`, from wherever the model knows it.
fn asks(words: &'static str, facts: &'static [&'static str]) -> Task {
    says(words).states(facts)
}

/// A request to remember a fact with this word.
fn remember(words: &'static str, word: &'static str) -> Task {
    says(words).calls("save_memory", json!({ "content": { "has": word } }))
}

/// A request to write a note with this word.
fn note(words: &'static str, word: &'static str) -> Task {
    says(words).calls("take_note", json!({ "text": { "has": word } }))
}

/// A request for the weather in `city`.
fn weather(words: &'static str, city: &'static str, facts: &'static [&'static str]) -> Task {
    asks(words, facts).calls("get_weather", json!({ "city": { "has": city } }))
}

/// A request for what is known of a colleague.
fn contact(words: &'static str, name: &'static str, facts: &'static [&'static str]) -> Task {
    asks(words, facts).calls("find_contact", json!({ "name": { "has": name } }))
}

pub(super) fn tasks() -> Vec<Task> {
    [first_half(), second_half()].concat().concat()
}

fn first_half() -> Vec<Vec<Task>> {
    vec![
        conversation(
            "miso",
            [
                says("Who are you?"),
                asks("What is 17 * 23?", &["391"]),
                asks("And times 2?", &["782"]),
                asks("What time is it?", &["9:00", "09:00", "9 am", "9 o'clock"]),
                remember("Remember that my cat is called Miso.", "miso"),
                asks("What is my cat called?", &["miso"]),
            ],
        ),
        conversation(
            "umbrella",
            [
                says("Good morning!"),
                weather("What is the weather like in Oslo?", "oslo", &["7", "rain", "rainy"]),
                asks("Do I need an umbrella there?", &["yes", "rain", "umbrella"]),
                weather("And how warm is it in Rome?", "rome", &["21"]),
                asks("Which of the two is warmer?", &["rome"]),
                says("Thanks!"),
            ],
        ),
        conversation(
            "bill",
            [
                asks("What is 248 divided by 4?", &["62"]),
                asks("Add a tip of 8 to that.", &["70"]),
                note("Write down that each of us pays 70 euros.", "70"),
                asks("What does each of us pay?", &["70"]),
            ],
        ),
        conversation(
            "call-ben",
            [
                says("Hi, I am Nora."),
                contact("What is Ben's extension?", "ben", &["377"]),
                contact("And Ada's?", "ada", &["214"]),
                asks("What is my name?", &["nora"]),
                says("Thank you, bye."),
            ],
        ),
        conversation(
            "allergy",
            [
                remember("I am allergic to peanuts, please remember that.", "peanut"),
                asks("What am I allergic to?", &["peanuts", "peanut"]),
                asks(
                    "Name a fruit that starts with A.",
                    &["apple", "apricot", "avocado", "acai"],
                ),
                asks("May I eat peanut butter?", &["no", "not", "avoid"]),
            ],
        ),
        conversation(
            "day",
            [
                asks("What day is it today?", &["tuesday", "10 march", "march 10"]),
                asks("What day is tomorrow?", &["wednesday", "11 march", "march 11"]),
                asks("Which year is it?", &["2026"]),
                note("Take a note: dentist tomorrow at ten.", "dentist"),
                says("Great, that was all."),
            ],
        ),
        conversation(
            "shopping",
            [
                note("Take a note: buy oat milk.", "oat milk"),
                note("Another one: buy bread.", "bread"),
                asks("What did I want to buy?", &["oat milk"]).states(&["bread"]),
                asks("How much are 3 loaves at 2.50 each?", &["7.5"]),
                says("Thanks."),
            ],
        ),
        conversation(
            "capitals",
            [
                asks("What is the capital of France?", &["paris"]),
                weather("How warm is it there now?", "paris", &["14"]),
                asks("And the capital of Japan?", &["tokyo"]),
                weather("How warm is it there?", "tokyo", &["26"]),
                asks("What is the difference in degrees?", &["12"]),
            ],
        ),
        conversation(
            "birthday",
            [
                remember("Remember: my sister's birthday is on 4 May.", "4 may"),
                asks(
                    "When is my sister's birthday?",
                    &["4 may", "may 4", "4th of may", "may 4th"],
                ),
                asks("How many days are in May?", &["31"]),
                says("What could I give her?"),
                note("Note down: book for my sister.", "sister"),
            ],
        ),
        conversation(
            "area",
            [
                asks("My room is 6 by 4 metres. What is its area?", &["24"]),
                asks(
                    "Tiles cost 19 euros for a square metre. What do they cost in all?",
                    &["456"],
                ),
                asks("And with 10 percent off?", &["410.4", "410.40"]),
                says("Thanks, that helps."),
            ],
        ),
        conversation(
            "hello",
            [
                says("Hello!"),
                says("How are you?"),
                says("What can you do for me?"),
                asks("What is 12 * 12?", &["144"]),
                asks("What was my last question?", &["12", "144"]),
                says("Bye!"),
            ],
        ),
        conversation(
            "moving",
            [
                remember("Please remember that I live in Lyon.", "lyon"),
                asks("Where do I live?", &["lyon"]),
                remember("I moved: I live in Turin now. Please remember it.", "turin"),
                asks("Where do I live now?", &["turin"]),
            ],
        ),
        conversation(
            "trip",
            [
                says("I am planning a trip."),
                weather("Is it raining in Dublin?", "dublin", &["drizzle", "11"]),
                weather("What about Cairo?", "cairo", &["33", "sunshine", "sunny"]),
                asks("Where should I go if I like the sun?", &["cairo"]),
                note("Write a note: book a flight to Cairo.", "cairo"),
                asks("Where do I fly?", &["cairo"]),
            ],
        ),
        conversation(
            "mail",
            [
                contact("What is Carla's mail address?", "carla", &["carla.ruiz@example.com"]),
                asks("What was her extension?", &["465"]),
                note("Note: write to Carla on Friday.", "carla"),
                asks("Whom do I write to on Friday?", &["carla"]),
            ],
        ),
        conversation(
            "colour",
            [
                remember("My favourite colour is green. Remember it.", "green"),
                asks("What is 81 / 9?", &["9"]),
                asks("What is my favourite colour?", &["green"]),
                asks("Which colour do you get from blue and yellow?", &["green"]),
            ],
        ),
    ]
}

fn second_half() -> Vec<Vec<Task>> {
    vec![
        conversation(
            "did-you",
            [
                remember("Remember that my car is a blue Volvo.", "volvo"),
                asks("Did you save that?", &["yes", "saved", "have"]),
                asks("What colour is my car?", &["blue"]),
                asks("And which make?", &["volvo"]),
                says("Perfect."),
            ],
        ),
        conversation(
            "powers",
            [
                asks("What is 2 to the power of 10?", &["1024"]),
                asks("And 2 to the power of 12?", &["4096"]),
                asks("What is the sum of both?", &["5120"]),
                asks("Divide that by 5.", &["1024"]),
            ],
        ),
        conversation(
            "wifi",
            [
                note("Take a note: the wifi password is tulip42.", "tulip42"),
                asks("What is the wifi password?", &["tulip42"]),
                note("Also note that the router is in the hall.", "hall"),
                asks("Where is the router?", &["hall"]),
                says("Thanks a lot!"),
            ],
        ),
        conversation(
            "team",
            [
                contact("How can I reach Dmitri by phone?", "dmitri", &["598"]),
                contact(
                    "And what is his mail address?",
                    "dmitri",
                    &["dmitri.petrov@example.com"],
                ),
                contact("What is Ada's mail address?", "ada", &["ada.novak@example.com"]),
                asks("Whose extension is 598?", &["dmitri"]),
            ],
        ),
        conversation(
            "translate",
            [
                asks("What is \"dog\" in French?", &["chien"]),
                asks("And in German?", &["hund"]),
                asks("And in Spanish?", &["perro"]),
                remember("Remember that I am learning Spanish.", "spanish"),
                asks("Which language am I learning?", &["spanish"]),
            ],
        ),
        conversation(
            "warmest",
            [
                weather("How warm is it in Lima?", "lima", &["18"]),
                weather("And in Nairobi?", "nairobi", &["24"]),
                asks("Which is warmer?", &["nairobi"]),
                asks("By how many degrees?", &["6"]),
                says("Thank you."),
            ],
        ),
        conversation(
            "diet",
            [
                says("I want to cook tonight."),
                remember("I am a vegetarian. Keep that in mind for the future.", "vegetarian"),
                asks("Should I cook chicken?", &["no", "not", "vegetarian"]),
                note("Note: buy tofu and rice.", "tofu"),
                asks("What do I need to buy?", &["tofu"]),
            ],
        ),
        conversation(
            "salary",
            [
                asks("I earn 3150 euros a month. What is that in a year?", &["37800"]),
                asks("And what is half of that?", &["18900"]),
                asks("How much is 10 percent of a month's pay?", &["315"]),
                says("Good to know."),
            ],
        ),
        conversation(
            "time",
            [
                asks("What time is it?", &["9:00", "09:00", "9 am", "9 o'clock"]),
                asks("What time will it be in two hours?", &["11:00", "11 am", "11 o'clock"]),
                asks("Is it morning or evening?", &["morning"]),
                asks("Which month is it?", &["march"]),
            ],
        ),
        conversation(
            "dog",
            [
                says("I have a dog."),
                remember(
                    "Remember that his name is Biscuit and that he is 4 years old.",
                    "biscuit",
                ),
                asks("How old is my dog?", &["4"]),
                asks("What is 4 * 7?", &["28"]),
                asks("What is my dog's name?", &["biscuit"]),
                weather("Is it warm enough in Paris for a walk?", "paris", &["14", "fog"]),
            ],
        ),
        conversation(
            "party",
            [
                asks(
                    "I invite 14 guests. Each drinks 3 glasses. How many glasses is that?",
                    &["42"],
                ),
                asks("A bottle has 6 glasses. How many bottles do I need?", &["7"]),
                asks("A bottle costs 8.50. What do I pay?", &["59.5", "59.50"]),
                note("Note that I need 7 bottles.", "7"),
                says("Thanks!"),
            ],
        ),
        conversation(
            "work",
            [
                remember("Remember that my boss is called Ines.", "ines"),
                remember("And that we meet every Monday.", "monday"),
                asks("Who is my boss?", &["ines"]),
                asks("When do we meet?", &["monday", "mondays"]),
                contact("What is Ben's mail address?", "ben", &["ben.okafor@example.com"]),
            ],
        ),
        conversation(
            "story",
            [
                says("Tell me a joke."),
                says("Another one, please."),
                asks("How many letters does the word \"apple\" have?", &["5"]),
                asks("What is 99 + 1?", &["100"]),
                says("That was fun."),
            ],
        ),
        conversation(
            "locker",
            [
                remember("My locker has number 318. Remember that.", "318"),
                asks("Which locker is mine?", &["318"]),
                asks("What is 318 times 3?", &["954"]),
                asks("What time is it now?", &["9:00", "09:00", "9 am", "9 o'clock"]),
                note("Note: bring a new lock.", "lock"),
                weather("How is the weather in Tokyo?", "tokyo", &["26", "thunderstorms"]),
                asks("What must I bring?", &["lock"]),
                says("Bye."),
            ],
        ),
        conversation(
            "honest",
            [
                asks("Are you a human?", &["no", "not", "ai", "assistant"]),
                says("Do you remember what we said last week?"),
                says("Please switch on the light in my kitchen.").admits(),
                asks("What is 7 * 8?", &["56"]),
                says("OK, thanks."),
            ],
        ),
    ]
}
