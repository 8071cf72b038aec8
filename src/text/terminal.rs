//! Text from files on its way to a terminal, which would take some characters as commands.

use std::borrow::Cow;

/// The text with every character that a terminal acts on replaced by one that shows that something was there; line ends
/// and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(acts, "\u{fffd}"))
}

fn acts(character: char) -> bool {
    // Controls, and those that turn the direction of what follows.
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && !matches!(character, '\n' | '\t')) || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        assert_eq!(printable("latency\t1 µs\n"), "latency\t1 µs\n");
        assert_eq!(
            printable("a\u{1b}[2Jb\u{7}\rc\u{9b}1md\u{202e}e"),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}1md\u{fffd}e"
        );
    }
}
