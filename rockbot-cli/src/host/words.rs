//! The words of a command line.

/// Returns the words after the program's name. The system gives any bytes; `std::env::args` panics
/// where they are no text.
pub fn words() -> Result<std::vec::IntoIter<String>, String> {
    let word = |word: std::ffi::OsString| {
        word.into_string()
            .map_err(|word| format!("the argument {word:?} is not valid UTF-8"))
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(word).collect::<Result<_, _>>()?;
    Ok(words.into_iter())
}
