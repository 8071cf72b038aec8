//! Lists of numbers as the kernel writes those of processors: `0-3,8`.

/// The numbers in a list such as `0-3,8`.
pub fn core_numbers(list: &str) -> impl Iterator<Item = usize> + '_ {
    list.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

/// Such a list of ascending numbers.
pub fn number_list(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(core_numbers("0-2,5,7-8").collect::<Vec<_>>(), [0, 1, 2, 5, 7, 8]);
        assert_eq!(core_numbers("3-,x,9-1").count(), 0);
        assert_eq!([number_list([0, 1, 2, 5, 7, 8]), number_list([])], ["0-2,5,7-8", ""]);
    }
}
