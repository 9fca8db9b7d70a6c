//! Folding of accented letters.

/// Accented Latin letters in lower case, by the letter that users type instead.
const FOLDED: [(&str, &str); 26] = [
    ("a", "àáâãäåāăąǎǟǻạảấầẩẫậắằẳẵặ"),
    ("ae", "æǽ"),
    ("c", "çćĉċč"),
    ("d", "ďđð"),
    ("e", "èéêëēĕėęěẹẻẽếềểễệ"),
    ("g", "ĝğġģǧ"),
    ("h", "ĥħ"),
    ("i", "ìíîïĩīĭįıǐỉị"),
    ("j", "ĵ"),
    ("k", "ķ"),
    ("l", "ĺļľŀł"),
    ("n", "ñńņňŉŋ"),
    ("o", "òóôõöøōŏőơǒǿọỏốồổỗộớờởỡợ"),
    ("oe", "œ"),
    ("r", "ŕŗř"),
    ("s", "śŝşšșſ"),
    ("ss", "ß"),
    ("t", "ţťŧț"),
    ("th", "þ"),
    ("u", "ùúûüũūŭůűųưǔụủứừửữự"),
    ("w", "ŵẁẃẅ"),
    ("y", "ýÿŷỳỵỷỹ"),
    ("z", "źżž"),
    ("е", "ѐё"),
    ("и", "ѝй"),
    ("σ", "ς"),
];

/// Appends `c`, which is in lower case, to `word` without its accent.
pub(super) fn fold(c: char, word: &mut String) {
    let is_accented = matches!(c, '\u{df}'..='\u{24f}' | '\u{1e80}'..='\u{1eff}' | 'ѐ' | 'ё' | 'ѝ' | 'й' | 'ς');
    let folded = is_accented.then(|| FOLDED.iter().find(|(_, accented)| accented.contains(c)));
    match folded.flatten() {
        Some((plain, _)) => word.push_str(plain),
        None => word.push(c),
    }
}
