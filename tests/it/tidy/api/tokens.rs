//! Rust tokens as text, spaced as a person writes them.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use quote::ToTokens;

/// Returns the text of a piece of syntax.
pub(super) fn text(syntax: impl ToTokens) -> String {
    let mut text = String::new();
    write(syntax.into_token_stream(), &mut text);
    text.trim().to_owned()
}

/// Returns the tokens without doc comments.
pub(super) fn without_docs(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_doc(&group.stream()) => {
                kept.pop();
            }
            TokenTree::Group(group) => {
                kept.push(Group::new(group.delimiter(), without_docs(group.stream())).into());
            }
            other => kept.push(other),
        }
    }
    kept.into_iter().collect()
}

fn is_doc(tokens: &TokenStream) -> bool {
    matches!(tokens.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "doc")
}

fn write(tokens: TokenStream, text: &mut String) {
    let mut is_joint = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write(group.stream(), text);
                text.truncate(text.trim_end_matches([',', ' ']).len());
                text.push_str(close);
                is_joint = false;
            }
            TokenTree::Punct(mark) => {
                write_mark(mark.as_char(), mark.spacing(), is_joint, text);
                is_joint = mark.spacing() == Spacing::Joint;
            }
            word => {
                write_word(&word.to_string(), text);
                is_joint = false;
            }
        }
    }
}

fn write_word(word: &str, text: &mut String) {
    let follows_word =
        text.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ')' | ']' | '>' | '"'));
    if follows_word {
        text.push(' ');
    }
    text.push_str(word);
}

fn write_mark(mark: char, spacing: Spacing, is_joint: bool, text: &mut String) {
    match mark {
        ',' => text.push_str(", "),
        ';' => text.push_str("; "),
        ':' if is_joint || spacing == Spacing::Joint => text.push(':'),
        ':' => text.push_str(": "),
        '-' => text.push_str(" -"),
        '>' if is_joint && text.ends_with('-') => text.push_str("> "),
        '+' | '=' if !is_joint => {
            text.truncate(text.trim_end().len());
            text.push(' ');
            text.push(mark);
            text.push(' ');
        }
        '\'' | '&' | '#' | '?' if text.ends_with(|last: char| last.is_alphanumeric()) => {
            text.push(' ');
            text.push(mark);
        }
        _ => text.push(mark),
    }
}
