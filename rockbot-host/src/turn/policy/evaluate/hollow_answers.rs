//! Answers that claim, promise, deny or do nothing, and plain answers beside them.

use super::{Answer, trigger};

/// Everyday requests, with answers of models that did nothing for them.
const HOLLOW: [(&str, [&str; 3]); 12] = [
    (
        "Book a table for two at Da Mario tonight.",
        [
            "All set! Enjoy your dinner.",
            "I'd be happy to book that table for you.",
            "Da Mario is a lovely choice for two.",
        ],
    ),
    (
        "Could you remind me to call Mum at six?",
        [
            "Of course, your reminder for six is ready.",
            "Sure, I'll remind you.",
            "Calling your mum is a nice idea.",
        ],
    ),
    (
        "I'm running late, tell Ada.",
        [
            "Ada has been informed.",
            "No problem.",
            "Ada will surely understand that the traffic is bad.",
        ],
    ),
    (
        "The meeting with Bob has to be on Friday instead.",
        [
            "Your meeting with Bob is now on Friday.",
            "Noted: Friday it is.",
            "Friday suits most people well.",
        ],
    ),
    (
        "We're out of milk, put it on the list.",
        [
            "Milk is on the list.",
            "Added!",
            "As an AI, I have no hands to write lists.",
        ],
    ),
    (
        "Lights off in the kitchen, please.",
        [
            "The kitchen is dark now.",
            "Right away!",
            "It saves energy to switch lights off.",
        ],
    ),
    (
        "Would you mind moving my dentist appointment to Monday?",
        [
            "Not at all! It's on Monday.",
            "I've rescheduled it for you.",
            "Unfortunately, that isn't something I can do.",
        ],
    ),
    (
        "Mail the invoice to Carol and copy me.",
        [
            "Sent.",
            "Here is the mail: \"Dear Carol, please find the invoice attached.\"",
            "I don't have access to your mail.",
        ],
    ),
    (
        "It would be great if you could cancel my gym membership.",
        [
            "Your membership is cancelled as of today.",
            "Consider it done.",
            "You can cancel it on the website of your gym.",
        ],
    ),
    (
        "turn the heating down to 19 degrees",
        [
            "Done.",
            "19 degrees is a healthy temperature.",
            "Let me take care of that.",
        ],
    ),
    (
        "Don't let me forget Tom's birthday on Sunday.",
        [
            "I won't!",
            "Tom's birthday: got it.",
            "You could write it into your calendar.",
        ],
    ),
    (
        "My tram card is empty; top it up with 20 euros.",
        [
            "Your card has 20 euros more.",
            "Working on it, one moment.",
            "Top-ups are possible at every stop.",
        ],
    ),
];

/// Questions, remarks and thanks with answers that are complete however short.
const PLAIN: [(&str, &str); 24] = [
    ("What is the capital of France?", "Paris."),
    ("What is 17 * 23?", "391"),
    ("Who wrote Faust?", "Goethe."),
    ("Which bus goes to the airport?", "Line 5."),
    ("How far is it to Bremen?", "About 120 km."),
    ("When does the shop close?", "At eight."),
    ("Where is my umbrella?", "In the hall."),
    ("Why is the sky blue?", "Air scatters blue light more than red light."),
    ("Is it raining?", "No."),
    ("Are the trains running?", "Yes, with small delays."),
    ("Did Ada answer?", "Yes, she said yes."),
    ("Does the meeting have an agenda?", "Not yet."),
    ("Has the parcel arrived?", "It arrived at noon."),
    (
        "Was the report sent?",
        "It was sent on Monday. Let me know if you need a copy.",
    ),
    ("And in Celsius?", "21 degrees."),
    ("Any news?", "None."),
    ("Can you tell me the time?", "Noon."),
    (
        "Could you explain what a mutex is?",
        "A lock that one thread holds at a time.",
    ),
    ("Tell me a joke, please.", "My dog ate my homework. It was a byte."),
    ("I want to know who won.", "The home team."),
    ("My cat is called Miso.", "A nice name."),
    ("I had a long day.", "Rest well."),
    ("Thanks a lot!", "You're welcome."),
    ("The weather is fine today.", "It is."),
];

fn is_judged(asked: &str, text: &str, has_calls: bool) -> bool {
    let answer = Answer {
        asked,
        text,
        has_tools: true,
        has_calls,
        has_changes: false,
    };
    trigger(&answer).is_some()
}

#[test]
fn every_hollow_answer_to_an_instruction_is_judged() {
    let mut missed = Vec::new();
    for (asked, answers) in HOLLOW {
        for text in answers {
            for has_calls in [false, true] {
                if !is_judged(asked, text, has_calls) {
                    missed.push((asked, text, has_calls));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn no_plain_answer_is_judged() {
    let judged = PLAIN
        .iter()
        .flat_map(|(asked, text)| [false, true].map(|has_calls| (asked, text, has_calls)));
    let judged: Vec<_> = judged
        .filter(|(asked, text, has_calls)| is_judged(asked, text, *has_calls))
        .collect();
    assert!(judged.is_empty(), "{judged:#?}");
}

#[test]
fn words_that_sound_done_count_after_a_lookup_for_other_instructions() {
    let asked = "Get Ada on the phone.";
    assert!(is_judged(asked, "All set, she is waiting.", true));
    assert!(is_judged(asked, "One moment, I'll dial.", true));
    assert!(!is_judged(
        "Find the best hotel in Bremen.",
        "The Park Hotel, by its ratings.",
        true
    ));
    assert!(is_judged(
        "Find the best hotel in Bremen.",
        "The Park Hotel, by its ratings.",
        false
    ));
}
