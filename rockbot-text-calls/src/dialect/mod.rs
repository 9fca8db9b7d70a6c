//! The forms in which models write calls: one row per form, with the parsers of its payloads.
//!
//! The forms were taken from the chat templates of the models and from the documentation of the servers that
//! read them (vLLM's and llama.cpp's pages on tool calling); each row names whose form it is.

mod harmony;
mod json_calls;
mod lines;
mod named;
mod parameters;
mod python;

use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

pub(super) use lines::name_line;
pub(super) use python::{bare_call, known_list};

/// A parser of calls at the cursor. Returns `None`, with the cursor where it was, when the form is another.
type PayloadParser = fn(&mut Cursor<'_>, &Tools) -> Option<Vec<CallSite>>;

/// A form of calls: its opening token, its closing tokens (the end of the answer always closes it), its payloads.
struct Dialect {
    opens: &'static str,
    closes: &'static [&'static str],
    parsers: &'static [PayloadParser],
    /// Set if the opening token is repeated before each call.
    once: bool,
}

const fn dialect(opens: &'static str, closes: &'static [&'static str], parsers: &'static [PayloadParser]) -> Dialect {
    Dialect {
        opens,
        closes,
        parsers,
        once: false,
    }
}

const fn prefix(opens: &'static str, parsers: &'static [PayloadParser]) -> Dialect {
    Dialect {
        opens,
        closes: &[],
        parsers,
        once: true,
    }
}

const JSON: PayloadParser = json_calls::read;
const PARAMETERS: PayloadParser = parameters::read;
const PYTHON: PayloadParser = python::read;
const TAGGED: PayloadParser = tagged;

/// Forms with a token around them. Any case of letters; the first row that fits and can be read counts.
const WRAPPED: &[Dialect] = &[
    // Hermes, Qwen 2.5 and 3: JSON. Qwen3-Coder: `<function=…>`. GLM 4.5 and later: a name and `<arg_key>`.
    dialect("<tool_call>", &["</tool_call>"], &[JSON, PARAMETERS, parameters::glm]),
    // Jamba; also what small models make of the former.
    dialect("<tool_calls>", &["</tool_calls>"], &[JSON, TAGGED, PARAMETERS]),
    // Glaive, OpenHermes, xLAM.
    dialect("<functioncall>", &["</functioncall>"], &[JSON]),
    dialect("<function_call>", &["</function_call>"], &[JSON, PARAMETERS]),
    // Claude's old form, which several open models learned.
    dialect("<function_calls>", &["</function_calls>"], &[PARAMETERS, JSON, TAGGED]),
    // Qwen2.5-Coder answers in the tag that lists its tools.
    dialect("<tools>", &["</tools>"], &[JSON]),
    // Nemotron.
    dialect("<TOOLCALL>", &["</TOOLCALL>"], &[JSON]),
    // MiniMax M2, Seed-OSS.
    dialect("<minimax:tool_call>", &["</minimax:tool_call>"], &[PARAMETERS, JSON]),
    dialect("<seed:tool_call>", &["</seed:tool_call>"], &[PARAMETERS]),
    // Mistral: `[{…}]` up to v7, `name{…}` and `name[ARGS]{…}` from v11 on.
    dialect("[TOOL_CALLS]", &["[/TOOL_CALLS]"], &[JSON, named::mistral]),
    // LM Studio's default prompt.
    dialect("[TOOL_REQUEST]", &["[END_TOOL_REQUEST]"], &[JSON]),
    // Llama 3.1 and later: JSON for custom tools, Python for built-in ones. Llama 4: Python.
    dialect("<|python_tag|>", &["<|eom_id|>", "<|eot_id|>"], &[JSON, PYTHON]),
    dialect("<|python_start|>", &["<|python_end|>"], &[JSON, PYTHON]),
    // Phi-4-mini, Firefunction.
    prefix("functools", &[json_calls::list]),
    // Phi-4-mini and Granite 3.
    dialect("<|tool_call|>", &["<|/tool_call|>"], &[JSON]),
    // LFM2.
    dialect("<|tool_call_start|>", &["<|tool_call_end|>"], &[PYTHON, JSON]),
    // Gemma 4.
    dialect("<|tool_call>", &["<tool_call|>"], &[named::gemma]),
    // Command R7B, Command A; and `Action:` with fenced JSON of Command R and R+.
    dialect("<|START_ACTION|>", &["<|END_ACTION|>"], &[JSON]),
    prefix("Action:", &[json_calls::fenced, lines::react]),
    // InternLM 2 and 3.
    dialect("<|action_start|><|plugin|>", &["<|action_end|>"], &[JSON]),
    dialect("<|action_start|> <|plugin|>", &["<|action_end|>"], &[JSON]),
    // DeepSeek V3, R1, V3.1; in the spellings of their tokens that are seen in the wild.
    dialect("<｜tool▁calls▁begin｜>", &["<｜tool▁calls▁end｜>"], &[named::deepseek]),
    dialect("<｜tool_calls_begin｜>", &["<｜tool_calls_end｜>"], &[named::deepseek]),
    dialect("<|tool▁calls▁begin|>", &["<|tool▁calls▁end|>"], &[named::deepseek]),
    // DeepSeek V3.2.
    dialect(
        "<｜DSML｜function_calls>",
        &["</｜DSML｜function_calls>"],
        &[PARAMETERS],
    ),
    dialect("<｜DSML｜tool_calls>", &["</｜DSML｜tool_calls>"], &[PARAMETERS]),
    // Kimi K2, and K3 with its own markup.
    dialect(
        "<|tool_calls_section_begin|>",
        &["<|tool_calls_section_end|>"],
        &[named::kimi],
    ),
    dialect("<|open|>tools<|sep|>", &["<|close|>tools<|sep|>"], &[PARAMETERS]),
    // gpt-oss.
    prefix("<|channel|>", &[harmony::read]),
    prefix("<|start|>assistant", &[harmony::read]),
    // Gemma 2 and 3, as Google's page on function calling prompts them; Gemini.
    dialect("```tool_code\n", &["```"], &[PYTHON, JSON]),
    dialect("```tool_call\n", &["```"], &[JSON, PYTHON, TAGGED]),
    dialect("```tool_calls\n", &["```"], &[JSON, PYTHON, TAGGED]),
    // The two lines of the original RockBot, which `instructions` teaches, too.
    prefix("tool_call_name:", &[lines::two_lines]),
    // Functionary 3.2.
    prefix(">>>", &[lines::functionary]),
];

/// Forms whose first token belongs to the payload: what stands inside a wrapper, without the wrapper.
const BARE: &[Dialect] = &[
    // Llama 3.1, Functionary 3.1, Qwen3-Coder.
    dialect("<function=", &["</tool_call>"], &[PARAMETERS]),
    dialect("<invoke name=", &["</function_calls>"], &[PARAMETERS]),
    dialect("<｜DSML｜invoke name=", &["</｜DSML｜function_calls>"], &[PARAMETERS]),
    dialect("<|open|>call tool=", &["<|close|>tools<|sep|>"], &[PARAMETERS]),
    dialect("<｜tool▁call▁begin｜>", &["<｜tool▁calls▁end｜>"], &[named::deepseek]),
    dialect("<|tool_call_begin|>", &["<|tool_calls_section_end|>"], &[named::kimi]),
];

/// Returns the opening tokens of all forms with a marker.
pub(super) fn openers() -> impl Iterator<Item = &'static str> {
    WRAPPED.iter().chain(BARE).map(|dialect| dialect.opens)
}

/// Parses the calls that begin at the cursor, if any.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let wrapped = WRAPPED.iter().map(|dialect| (dialect, dialect.opens.len()));
    let bare = BARE.iter().map(|dialect| (dialect, 0));
    wrapped
        .chain(bare)
        .find_map(|(dialect, opener)| read_as(cursor, tools, dialect, opener))
}

fn read_as(cursor: &mut Cursor<'_>, tools: &Tools, dialect: &Dialect, opener: usize) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    if !crate::cursor::starts_with(cursor.rest(), dialect.opens) {
        return None;
    }
    cursor.at += opener;
    let outer = std::mem::replace(&mut cursor.closes, dialect.closes);
    let entries = payload(cursor, tools, dialect);
    cursor.closes = outer;
    entries
        .map(|mut entries| {
            // The tokens around the calls belong to the first and the last of them.
            let end = cursor.at;
            entries
                .first_mut()
                .into_iter()
                .for_each(|first| first.span.start = start);
            entries.last_mut().into_iter().for_each(|last| last.span.end = end);
            entries
        })
        .or_else(|| {
            cursor.at = start;
            None
        })
}

/// Parses calls up to the closing token, which may be missing.
fn payload(cursor: &mut Cursor<'_>, tools: &Tools, dialect: &Dialect) -> Option<Vec<CallSite>> {
    let mut entries = Vec::new();
    let mut end = cursor.at;
    loop {
        separators(cursor);
        if cursor.eat_any(dialect.closes) {
            end = cursor.at;
            break;
        }
        let Some(more) = dialect.parsers.iter().find_map(|read| read(cursor, tools)) else {
            break;
        };
        entries.extend(more);
        stray_brackets(cursor);
        end = cursor.at;
        if dialect.once {
            break;
        }
    }
    cursor.at = end;
    (!entries.is_empty()).then_some(entries)
}

/// Moves over separators between two calls.
pub(super) fn separators(cursor: &mut Cursor<'_>) {
    cursor.space();
    while cursor.eat_any(&[",", ";"]) {
        cursor.space();
    }
}

/// Moves over surplus brackets directly before the closing token.
fn stray_brackets(cursor: &mut Cursor<'_>) {
    let start = cursor.at;
    cursor.space();
    while cursor.eat_any(&["}", "]"]) {
        cursor.space();
    }
    if !cursor.is_at_end() {
        cursor.at = start;
    }
}

/// Moves over a closing token without an opening one.
pub(super) fn stray_close(cursor: &mut Cursor<'_>) -> bool {
    let closes = WRAPPED.iter().flat_map(|dialect| dialect.closes);
    closes
        .filter(|close| !close.starts_with('`'))
        .any(|close| cursor.eat(close))
}

/// Parses `<tool_call>` inside a plural tag.
fn tagged(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    read_as(cursor, tools, &WRAPPED[0], WRAPPED[0].opens.len())
}
