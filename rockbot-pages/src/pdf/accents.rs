//! Letters with accents that are drawn as two glyphs, one over the other.

/// Accents, each with the letters that have it and the characters that they become.
const COMPOSED: [(char, &str, &str); 13] = [
    ('´', "AEIOUYaeiouyıCLNRSZclnrsz", "ÁÉÍÓÚÝáéíóúýíĆĹŃŔŚŹćĺńŕśź"),
    ('`', "AEIOUaeiouı", "ÀÈÌÒÙàèìòùì"),
    ('ˆ', "AEIOUaeiouıWYwy", "ÂÊÎÔÛâêîôûîŴŶŵŷ"),
    ('¨', "AEIOUYaeiouyı", "ÄËÏÖÜŸäëïöüÿï"),
    ('˜', "ANOIanoiı", "ÃÑÕĨãñõĩĩ"),
    ('¸', "CSTcst", "ÇŞŢçşţ"),
    ('˝', "OUou", "ŐŰőű"),
    ('ˇ', "CDENRSTZcdenrstz", "ČĎĚŇŘŠŤŽčďěňřšťž"),
    ('˚', "AUau", "ÅŮåů"),
    ('¯', "AEIOUaeiouı", "ĀĒĪŌŪāēīōūī"),
    ('˙', "CEGIZcegz", "ĊĖĠİŻċėġż"),
    ('˘', "AGUagu", "ĂĞŬăğŭ"),
    ('˛', "AEIUaeiu", "ĄĘĮŲąęįų"),
];

/// Returns the character that two overlapping glyphs make: an accent and its letter, or a letter
/// and a mark that hangs below it. An accent above may overlap the letter before its own letter,
/// too.
pub(super) fn composed(first: char, second: char) -> Option<char> {
    let with = |accent: char, letter: char| {
        let (_, letters, composed) = COMPOSED.iter().find(|(own, ..)| *own == accent)?;
        let index = letters.chars().position(|own| own == letter)?;
        composed.chars().nth(index)
    };
    let below = || with(second, first).filter(|_| matches!(second, '¸' | '˛'));
    with(first, second).or_else(below)
}
