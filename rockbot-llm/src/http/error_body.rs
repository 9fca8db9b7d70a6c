//! Error bodies, in any of the shapes that model servers use, and proxies before them.

use rockbot_core::chat::Overflow;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ErrorFacts;

/// Maximum number of bytes of a body that are searched for a message to quote.
const MAX_QUOTED_BYTES: usize = 4096;

/// Reads `{"error":{…}}`, `{"error":"text"}`, `{"detail":…}`, `{"message":…}`, a list of these,
/// HTML, text.
pub(crate) fn read_error(body: &[u8]) -> ErrorFacts {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Array(list)) => list.first().map(from_json).unwrap_or_default(),
        Ok(json) => from_json(&json),
        Err(_) => ErrorFacts {
            text: plain_text(&String::from_utf8_lossy(body)),
            ..ErrorFacts::default()
        },
    }
}

/// Quotes the body that the server sent instead of an answer, as far as it fits into a message.
pub(crate) fn quoted(body: &[u8]) -> String {
    let body = &body[..body.len().min(MAX_QUOTED_BYTES)];
    match read_error(body).text {
        text if text.is_empty() => text,
        // Bytes that are no text became longer.
        text => format!(": {}", &text[..text.floor_char_boundary(MAX_QUOTED_BYTES)]),
    }
}

/// Returns `true` if the member `error` holds an error: some servers send an empty member with
/// each answer.
pub(crate) fn is_error(raw: &RawValue) -> bool {
    !matches!(raw.get(), "\"\"" | "{}" | "false" | "0")
}

fn from_json(body: &Value) -> ErrorFacts {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let metadata = &error["metadata"];
    let lower = |name: &str| error[name].as_str().unwrap_or_default().to_ascii_lowercase();
    let number = error["code"].as_u64().or_else(|| error["code"].as_str()?.parse().ok());
    ErrorFacts {
        text: words(body, error),
        code: lower("code"),
        kind: lower("type"),
        status: number
            .and_then(|number| u16::try_from(number).ok())
            .filter(|status| (400..600).contains(status)),
        request_id: body["request_id"].as_str().map(str::to_owned),
        is_flagged: !metadata["flagged_input"].is_null(),
        is_in_flight_limit: metadata["limit_source"] == "openrouter_in_flight_budget",
        sizes: Overflow::new(error["n_ctx"].as_u64(), error["n_prompt_tokens"].as_u64()),
    }
}

fn words(body: &Value, error: &Value) -> String {
    let candidates = [&error["message"], error, &body["message"], &body["detail"]];
    let said = candidates.into_iter().find_map(|value| match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    });
    let mut text = match (said, &body["detail"]) {
        (Some(text), _) => text,
        (None, Value::Null) => match &error["message"] {
            Value::Null => String::new(),
            message => message.to_string(),
        },
        (None, detail) => detail.to_string(),
    };
    // OpenRouter passes on the error of the provider behind it.
    if let Some(raw) = error["metadata"]["raw"].as_str() {
        text = format!("{text}: {raw}");
    }
    text
}

/// Returns the title of a web page, or another text as it is.
fn plain_text(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.trim().to_owned();
    }
    let title = text
        .split_once("<title>")
        .and_then(|(_, rest)| rest.split_once("</title>"));
    match title {
        Some((title, _)) => format!("a web page, \"{}\"", title.trim()),
        None => "a web page".into(),
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::ChatErrorKind::{self, *};
    use rockbot_core::testing::Mutations;

    use super::*;

    #[track_caller]
    fn check(status: impl Into<Option<u16>>, body: &str, expected: ChatErrorKind) {
        assert_eq!(read_error(body.as_bytes()).kind(status.into()), expected, "{body}");
    }

    #[test]
    fn the_sizes_of_an_overflow_are_known_where_they_are_told() {
        for (text, limit, asked) in [
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
                Some(8192),
                Some(9001),
            ),
            (
                "The decoder prompt (length 9000) is longer than the maximum model length of 4096.",
                Some(4096),
                Some(9000),
            ),
            (
                "prompt is too long: 213462 tokens > 200000 maximum",
                Some(200_000),
                Some(213_462),
            ),
            (
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                Some(1_048_575),
                Some(1_196_265),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                Some(131_072),
                Some(537_812),
            ),
            (
                "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
                Some(32_768),
                Some(40_000),
            ),
            (
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens.",
                Some(131_072),
                Some(200_000),
            ),
            (
                "prompt token count of 130000 exceeds the limit of 128000",
                Some(128_000),
                Some(130_000),
            ),
            (
                "the request exceeds the available context size (4096 tokens), try increasing it",
                Some(4_096),
                None,
            ),
            (
                "Invalid request: Your request exceeded model token limit: 131072",
                Some(131_072),
                None,
            ),
            ("invalid params, context window exceeds limit (2013)", None, None),
            ("Please reduce the length of the messages or completion.", None, None),
        ] {
            let body = serde_json::json!({ "error": { "message": text } }).to_string();
            assert_eq!(
                read_error(body.as_bytes()).overflow(),
                Overflow::new(limit, asked),
                "{text}"
            );
        }
        let llama = br#"{"error":{"code":400,"message":"no","type":"exceed_context_size_error","n_prompt_tokens":5,"n_ctx":4}}"#;
        assert_eq!(read_error(llama).overflow(), Overflow::new(Some(4), Some(5)));
    }

    #[test]
    fn every_wording_of_an_overflow_is_known() {
        let say = |text: &str| {
            format!(
                r#"{{"error":{{"message":{},"type":"invalid_request_error"}}}}"#,
                Value::from(text)
            )
        };
        for text in [
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "'max_tokens' or 'max_completion_tokens' is too large: 9000.",
            "The decoder prompt (length 9000) is longer than the maximum model length of 4096.",
            "prompt is too long: 213462 tokens > 200000 maximum",
            "Input is too long for requested model.",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Please reduce the length of the messages or completion.",
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens.",
            "prompt token count of 130000 exceeds the limit of 128000",
            "the request exceeds the available context size (4096 tokens), try increasing it",
            "The number of tokens to keep is greater than the context length",
            "invalid params, context window exceeds limit (2013)",
            "Invalid request: Your request exceeded model token limit: 131072",
        ] {
            check(400, &say(text), ContextOverflow);
        }
        check(
            400,
            r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
            ContextOverflow,
        );
        let too_large = r#"{"type":"error","error":{"type":"request_too_large","message":"no"}}"#;
        check(413, too_large, ContextOverflow);
        let llama = r#"{"error":{"code":400,"message":"no","type":"exceed_context_size_error","n_ctx":4}}"#;
        check(400, llama, ContextOverflow);
        // Of texts that are to be embedded.
        let unparsed = r#"{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}"#;
        check(500, unparsed, InvalidResponse);
        check(None, unparsed, InvalidResponse);
        let needs_option =
            r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#;
        check(500, needs_option, InvalidRequest);
        let refused = r#"{"error":{"code":400,"message":"Jinja Exception: This model only supports single tool-calls at once!","type":"invalid_request_error"}}"#;
        check(400, refused, InvalidRequest);
        check(
            500,
            r#"{"error":{"message":"Failed to parse input at pos 0: <tool_call>"}}"#,
            InvalidResponse,
        );
        let batch = r#"{"error":{"code":500,"message":"input (3001 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}"#;
        check(500, batch, ContextOverflow);
        check(400, "", ContextOverflow);
        check(413, "", ContextOverflow);
    }

    #[test]
    fn rate_limits_that_speak_of_tokens_are_no_overflow() {
        let say = |text: &str| format!(r#"{{"error":{{"message":{}}}}}"#, Value::from(text));
        let tpm = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000, \
                   please reduce the length of the messages";
        check(413, &say(tpm), RateLimited);
        check(429, &say("prompt token count exceeds the limit of 40000"), RateLimited);
        check(
            429,
            &say("Rate limit reached for tokens: maximum context length is no matter"),
            RateLimited,
        );
        check(
            503,
            &say("rate limit: prompt is too long for now, too many tokens per minute"),
            Overloaded,
        );
        check(
            400,
            &say("token usage exceeds the limit of 100 per day"),
            InvalidRequest,
        );
        check(
            429,
            &say("Too many tokens, please wait before trying again."),
            RateLimited,
        );
    }

    #[test]
    fn the_status_decides_where_nothing_else_does() {
        for (status, kind) in [
            (301, NotFound),
            (400, InvalidRequest),
            (401, Auth),
            (402, QuotaExceeded),
            (403, Auth),
            (404, NotFound),
            (408, TimedOut),
            (409, Overloaded),
            (413, ContextOverflow),
            (422, InvalidRequest),
            (429, RateLimited),
            (500, Overloaded),
            (501, NotFound),
            (503, Overloaded),
            (529, Overloaded),
        ] {
            check(status, r#"{"error":"text"}"#, kind);
        }
        check(None, r#"{"error":"text"}"#, Overloaded);
        check(None, r#"{"error":{"type":"invalid_request_error"}}"#, InvalidRequest);
    }

    #[test]
    fn codes_are_more_exact_than_the_status() {
        check(
            429,
            r#"{"error":{"message":"x","code":"insufficient_quota"}}"#,
            QuotaExceeded,
        );
        check(
            429,
            r#"{"error":{"message":"x","type":"insufficient_quota","code":null}}"#,
            QuotaExceeded,
        );
        check(
            400,
            r#"{"error":{"message":"x","code":"content_filter"}}"#,
            ContentFiltered,
        );
        check(400, r#"{"error":{"message":"x","code":"model_not_found"}}"#, NotFound);
        check(
            200,
            r#"{"error":{"message":"x","type":"overloaded_error"}}"#,
            Overloaded,
        );
        let flagged = r#"{"error":{"code":403,"message":"x","metadata":{"flagged_input":"bad"}}}"#;
        check(403, flagged, ContentFiltered);
        let in_flight = r#"{"error":{"code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#;
        check(402, in_flight, RateLimited);
    }

    #[test]
    fn the_words_are_found_in_every_shape() {
        let check = |body: &str, expected: &str| assert_eq!(read_error(body.as_bytes()).text, expected);
        check(r#"{"error":{"message":"a","code":1}}"#, "a");
        check(r#"{"error":"a"}"#, "a");
        check(r#"{"detail":"a"}"#, "a");
        check(r#"{"detail":[{"msg":"a"}]}"#, r#"[{"msg":"a"}]"#);
        check(r#"{"message":"a","object":"error"}"#, "a");
        check(r#"[{"error":{"message":"a"}}]"#, "a");
        check(
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"a"}}}"#,
            "Provider returned error: a",
        );
        check(
            "<!doctype html><title> Bad gateway </title>",
            "a web page, \"Bad gateway\"",
        );
        check("<html>", "a web page");
        check(" plain \n", "plain");
        check("", "");
    }

    #[test]
    fn a_numeric_code_is_a_status() {
        let status = |body: &str| read_error(body.as_bytes()).status;
        assert_eq!(status(r#"{"error":{"code":502}}"#), Some(502));
        assert_eq!(status(r#"{"error":{"code":"429"}}"#), Some(429));
        assert_eq!(status(r#"{"error":{"code":1302}}"#), None);
    }

    #[test]
    fn broken_bodies_are_quoted_in_part() {
        let corpus = [
            r#"{"error":{"message":"maximum context length is 4096 tokens, you requested 5000","code":"context_length_exceeded"}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down"}}]"#,
            "<html><body>502 Bad Gateway</body></html>",
        ];
        Mutations::of(corpus).check(|body| {
            read_error(body);
            assert!(
                quoted(body).len() <= MAX_QUOTED_BYTES + ": ".len(),
                "{}",
                quoted(body).len()
            );
        });
    }
}
