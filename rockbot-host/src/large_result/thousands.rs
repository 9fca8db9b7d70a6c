//! Numbers with separators, for texts that models and people read.

/// Returns `number` with a space between groups of three digits: `462 000`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1 000"),
            (462_000, "462 000"),
            (10_000_000, "10 000 000"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }
}
