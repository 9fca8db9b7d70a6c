//! The bounds of all calls' arguments, checked before anything parses them.

/// Maximum length of a call's arguments, in bytes: 256 KiB.
pub const MAX_ARGUMENT_BYTES: usize = 256 * 1024;

/// Maximum nesting of a call's arguments: 64 levels. The braces of the arguments object are the
/// first.
pub const MAX_ARGUMENT_DEPTH: usize = 64;

/// Checks length, first character and depth without parsing.
pub(super) fn check(arguments: &str) -> Result<(), String> {
    if arguments.len() > MAX_ARGUMENT_BYTES {
        let bytes = arguments.len();
        return Err(format!(
            "the arguments are {bytes} bytes long, {MAX_ARGUMENT_BYTES} are allowed: send less"
        ));
    }
    check_start(arguments)?;
    if is_too_deep(arguments.as_bytes()) {
        return Err(format!(
            "the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels: send something flatter"
        ));
    }
    Ok(())
}

fn check_start(arguments: &str) -> Result<(), String> {
    let start = arguments
        .bytes()
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    let given = match start {
        Some(b'{') => return Ok(()),
        None => {
            return Err("the arguments are empty: send a JSON object, `{}` when there is nothing to say".to_owned());
        }
        Some(b'[') => "an array",
        Some(b'"') => "a string: send the object itself, not its text in quotes",
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'-' | b'0'..=b'9') => "a number",
        Some(_) => "other text",
    };
    Err(format!("the arguments must be a JSON object, got {given}"))
}

fn is_too_deep(json: &[u8]) -> bool {
    // A text with few opening brackets cannot be too deep, wherever they stand.
    if opening_brackets(json) <= MAX_ARGUMENT_DEPTH {
        return false;
    }
    let mut depth = 0_usize;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_ARGUMENT_DEPTH {
            return true;
        }
    }
    false
}

/// Counts the opening brackets. The sums of parts fit into a byte, so that the compiler compares
/// many bytes at once.
fn opening_brackets(json: &[u8]) -> usize {
    let is_opening = |byte: &u8| u8::from((*byte == b'{') | (*byte == b'['));
    let parts = json.chunks(usize::from(u8::MAX));
    parts
        .map(|part| usize::from(part.iter().map(is_opening).sum::<u8>()))
        .sum()
}

fn skip_string<'a>(bytes: &mut impl Iterator<Item = &'a u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}
