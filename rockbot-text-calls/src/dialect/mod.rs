//! The forms of calls that models write: one row per form, with the parsers of its payloads.
//!
//! The forms were taken from the chat templates of the models and from the documentation of the
//! servers that read them (vLLM's and llama.cpp's pages on tool calling); each row names whose
//! form it is.

mod framed;
mod harmony;
mod json_calls;
mod keyed;
mod lines;
mod messages;
mod minimax;
mod named;
mod parameters;
mod python;
mod sections;

use self::framed::Framed;
use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

pub(super) use harmony::is_leaked;
pub(super) use lines::{decorated, name_line};
pub(super) use named::bare_gemma;
pub(super) use python::{bare_call, known_list};

/// A parser of calls at the cursor. Returns `None`, with the cursor where it was, when the form
/// is another.
type PayloadParser = fn(&mut Cursor<'_>, &Tools) -> Option<Vec<CallSite>>;

/// A form of calls: its opening token, its closing tokens (the end of the answer always closes
/// it), its payloads.
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

/// Forms with a token around them. Any case of letters; the first row that fits and can be read
/// counts.
const WRAPPED: &[Dialect] = &[
    // Hermes, Qwen 2.5 and 3: JSON. Qwen3-Coder: `<function=…>`. GLM 4.5 and later, Ling 3, Laguna:
    // a name and `<arg_key>`. MiniMax M3 without its special tokens: a tag for each argument.
    dialect(
        "<tool_call>",
        &["</tool_call>"],
        &[
            JSON,
            PARAMETERS,
            keyed::glm,
            minimax::read,
            named::before_object,
            PYTHON,
        ],
    ),
    // MiniMax M3.
    dialect(
        "]<]minimax[>[<tool_call>",
        &["]<]minimax[>[</tool_call>"],
        &[minimax::read],
    ),
    // Jamba, Hunyuan; also the forms that small models make of the former.
    dialect("<tool_calls>", &["</tool_calls>"], &[JSON, TAGGED, PARAMETERS]),
    // Hunyuan 4 marks its tags with a suffix.
    prefix("<tool_calls:", &[keyed::suffixed]),
    // LongCat.
    dialect(
        "<longcat_tool_call>",
        &["</longcat_tool_call>"],
        &[JSON, keyed::longcat],
    ),
    // dots.
    dialect("<dots_function_call>", &["</dots_function_call>"], &[PARAMETERS, JSON]),
    // Glaive, OpenHermes, xLAM.
    dialect("<functioncall>", &["</functioncall>"], &[JSON]),
    dialect("<function_call>", &["</function_call>"], &[JSON, PARAMETERS]),
    // Claude's old form, which several open models learned; around Python in Olmo 3.
    dialect(
        "<function_calls>",
        &["</function_calls>"],
        &[PARAMETERS, JSON, TAGGED, PYTHON],
    ),
    // Muse.
    dialect("<atem:function_calls>", &["</atem:function_calls>"], &[PARAMETERS]),
    // K2 Horizon.
    dialect("<ifm|tool_calls>", &["</ifm|tool_calls>"], &[keyed::ifm]),
    // Solar Open 2.
    dialect("<|tool_call:start|>", &["<|tool_call:end|>"], &[keyed::solar]),
    // PLaMo 3.
    dialect(
        "<|plamo:begin_tool_requests:plamo|>",
        &["<|plamo:end_tool_requests:plamo|>"],
        &[named::plamo],
    ),
    // Inkling, which repeats the name before the call.
    prefix("<|message_model|>", &[json_calls::inkling]),
    dialect("<|content_invoke_tool_json|>", &["<|end_message|>"], &[JSON]),
    // HyperCLOVA X.
    dialect("-> tool/function_call\n", &["<|im_end|>"], &[JSON]),
    // Pangu.
    dialect("[unused11]", &["[unused12]"], &[JSON]),
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
    // LFM2; MiniCPM 3, in a fence.
    dialect(
        "<|tool_call_start|>",
        &["<|tool_call_end|>"],
        &[PYTHON, JSON, python::fenced],
    ),
    // Gemma 4 and FunctionGemma; and a token of the former that was broken into pieces.
    dialect("<|tool_call>", &["<tool_call|>"], &[named::gemma]),
    dialect("<start_function_call>", &["<end_function_call>"], &[named::gemma]),
    dialect("<call>", &["</call>"], &[named::known_gemma]),
    // Apertus.
    dialect("<|tools_prefix|>", &["<|tools_suffix|>"], &[JSON]),
    // GigaChat 3, 3.1 and 3.5.
    prefix("<|message_sep|>", &[json_calls::separated]),
    dialect("function call<|role_sep|>", &["<|message_sep|>"], &[JSON]),
    dialect("<|function_call|>", &["<|/function_call|>", "<|message_sep|>"], &[JSON]),
    dialect("<｜GCML｜tool_calls>", &["</｜GCML｜tool_calls>"], &[PARAMETERS]),
    // Functionary 2.
    prefix("<|from|>assistant\n<|recipient|>", &[lines::recipient]),
    prefix("<|recipient|>", &[lines::recipient]),
    // Command R7B, Command A; and `Action:` with fenced JSON of Command R and R+.
    dialect("<|START_ACTION|>", &["<|END_ACTION|>"], &[JSON]),
    prefix("Action:", &[json_calls::fenced, lines::react]),
    // InternLM 2 and 3.
    dialect("<|action_start|><|plugin|>", &["<|action_end|>"], &[JSON]),
    dialect("<|action_start|> <|plugin|>", &["<|action_end|>"], &[JSON]),
    // DeepSeek V3, R1, V3.1; in the spellings of their tokens that are seen in the wild.
    dialect("<｜tool▁calls▁begin｜>", &["<｜tool▁calls▁end｜>"], &[named::deepseek]),
    // Step 3 uses these tokens around markup.
    dialect(
        "<｜tool_calls_begin｜>",
        &["<｜tool_calls_end｜>"],
        &[parameters::step3, named::deepseek],
    ),
    dialect("<steptml:toolcall>", &["</steptml:toolcall>"], &[PARAMETERS]),
    dialect("<|tool▁calls▁begin|>", &["<|tool▁calls▁end|>"], &[named::deepseek]),
    // DeepSeek V3.2.
    dialect(
        "<｜DSML｜function_calls>",
        &["</｜DSML｜function_calls>"],
        &[PARAMETERS],
    ),
    dialect("<｜DSML｜tool_calls>", &["</｜DSML｜tool_calls>"], &[PARAMETERS]),
    // Kimi K2.
    dialect(
        "<|tool_calls_section_begin|>",
        &["<|tool_calls_section_end|>"],
        &[named::kimi],
    ),
    dialect(
        "<|tool_call_section_begin|>",
        &["<|tool_call_section_end|>"],
        &[named::kimi],
    ),
    // gpt-oss without its special tokens; with them it is read by `messages`, and Kimi K3 by
    // `sections`.
    prefix("commentary to=", &[harmony::without_tokens]),
    prefix("analysis to=", &[harmony::without_tokens]),
    prefix("to=functions.", &[harmony::without_tokens]),
    prefix("assistant to=functions.", &[harmony::without_tokens]),
    prefix("assistantcommentary to=", &[harmony::without_tokens]),
    prefix("assistantanalysis to=", &[harmony::without_tokens]),
    // Gemma 2 and 3, as Google's page on function calling prompts them; Gemini.
    dialect("```tool_code\n", &["```"], &[PYTHON, JSON]),
    dialect("```tool_call\n", &["```"], &[JSON, PYTHON, TAGGED]),
    dialect("```tool_calls\n", &["```"], &[JSON, PYTHON, TAGGED]),
    // The two lines of the original RockBot, which `instructions` teaches, too.
    prefix("tool_call_name:", &[lines::two_lines]),
    // Functionary 3.2.
    prefix(">>>", &[lines::functionary]),
];

/// Forms whose first token belongs to the payload: the content of a wrapper, without the wrapper.
const BARE: &[Dialect] = &[
    // Llama 3.1, Functionary 3.1, Qwen3-Coder.
    dialect("<function=", &["</tool_call>"], &[PARAMETERS]),
    dialect("<invoke name=", &["</function_calls>"], &[PARAMETERS]),
    // MiniCPM 5.
    dialect("<function name=", &["</tool_call>"], &[PARAMETERS]),
    dialect("<steptml:invoke name=", &["</steptml:toolcall>"], &[PARAMETERS]),
    dialect("<atem:invoke name=", &["</atem:function_calls>"], &[PARAMETERS]),
    dialect("<｜GCML｜invoke name=", &["</｜GCML｜tool_calls>"], &[PARAMETERS]),
    dialect("<ifm|tool_call>", &["</ifm|tool_calls>"], &[keyed::ifm]),
    dialect(
        "<｜tool_call_begin｜>",
        &["<｜tool_calls_end｜>"],
        &[parameters::step3, named::deepseek],
    ),
    dialect("<｜DSML｜invoke name=", &["</｜DSML｜function_calls>"], &[PARAMETERS]),
    dialect("<｜tool▁call▁begin｜>", &["<｜tool▁calls▁end｜>"], &[named::deepseek]),
    dialect("<|tool_call_begin|>", &["<|tool_calls_section_end|>"], &[named::kimi]),
];

/// Opening tokens that people do not type: the model's tokenizer has each of them as one token.
const SPECIAL: [&str; 5] = ["<|", "<｜", "[TOOL_CALLS]", "]<]minimax", ">>>"];

/// Opening token of a call of Kimi's without its section, which counts even inside of thoughts.
pub(super) const CALL_IN_THOUGHTS: &str = "<|tool_call_begin|>";

/// Opening tokens of sections of calls that count even inside of thoughts, where Kimi and DeepSeek
/// write them.
pub(super) const SECTIONS_IN_THOUGHTS: [&str; 6] = [
    "<|tool_calls_section_begin|>",
    "<|tool_call_section_begin|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜DSML｜function_calls>",
    "<｜DSML｜tool_calls>",
];

/// Returns `true` if `text` begins with a token that people do not type.
pub(super) fn is_special(text: &str) -> bool {
    SPECIAL.iter().any(|token| text.starts_with(token))
}

/// Returns the opening tokens of all forms with a marker.
pub(super) fn openers() -> impl Iterator<Item = &'static str> {
    let rows = WRAPPED.iter().chain(BARE).map(|dialect| dialect.opens);
    rows.chain(framed::OPENERS)
}

/// Parses the messages or sections that begin at the cursor. Returns `None`, with the cursor
/// where it was, when none begin here.
pub(super) fn framed(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Framed> {
    messages::read(cursor, tools)
        .or_else(|| sections::read(cursor, tools))
        .or_else(|| harmony::leaked(cursor, tools))
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
