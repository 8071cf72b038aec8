//! Graphs from text: an edge list, or the part of DOT that says who sends to whom.
//!
//! DOT: `digraph` with node statements, chains (`a -> b -> c`), attribute lists and comments. Of the attributes of edges,
//! `bytes` and `start` say what a message is, a start being a time, `a>b` or `a>b,c>b+2ms`; others are skipped. Subgraphs and ports are not understood and said to be an
//! error rather than misread.

use std::iter::Peekable;
use std::str::{CharIndices, FromStr};

use super::{Graph, GraphError, MOST_EDGES, Message};
use crate::units;

impl FromStr for Graph {
    type Err = GraphError;

    /// DOT when the first word says so, otherwise `source destination` a line; `#` starts a comment.
    fn from_str(text: &str) -> Result<Self, GraphError> {
        let mut words = Lexer::new(text);
        match words.next() {
            Ok((_, Token::Word(word))) if is_keyword(&word) => dot(text),
            _ => edge_list(text),
        }
    }
}

fn is_keyword(word: &str) -> bool {
    ["digraph", "graph", "strict"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn edge_list(text: &str) -> Result<Graph, GraphError> {
    let (mut pairs, mut messages) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        match words[..] {
            [] => {}
            [source, destination, ref rest @ ..] if rest.len() < 3 && is_plain(source) && is_plain(destination) => {
                let place = || format!("line {}", at + 1);
                messages.push(message(rest.first().copied(), rest.get(1).copied(), &pairs, place)?);
                pairs.push((source, destination));
                within_bounds(&pairs)?;
            }
            _ => return Err(GraphError::Line { line: at + 1, text: line.trim().to_owned() }),
        }
    }
    Ok(Graph::new(&pairs)?.with_messages(messages))
}

/// Found out while they are read: what follows is not looked at.
fn within_bounds<T>(pairs: &[T]) -> Result<(), GraphError> {
    if pairs.len() > MOST_EDGES { Err(GraphError::TooManyEdges) } else { Ok(()) }
}

/// A message from how its size and its start are written, after those of `above`. Its place is asked for where it is wrong: finding
/// that takes as long as all before it is.
fn message<S: AsRef<str>>(
    bytes: Option<&str>,
    start: Option<&str>,
    above: &[(S, S)],
    place: impl Fn() -> String,
) -> Result<Message, GraphError> {
    let wrong = |detail: String| GraphError::Message { place: place(), detail: detail.replace(char::is_control, " ") };
    let bytes = bytes.map(units::message).transpose().map_err(wrong)?;
    let (after, delay) = start.map_or(Ok((Vec::new(), None)), |start| arrivals(start, above)).map_err(wrong)?;
    let delay = delay.map(units::duration).transpose().map_err(wrong)?;
    let start_ns = delay.map_or(Ok(0), |start| u64::try_from(start.as_nanos()));
    Ok(Message {
        bytes: bytes.map(|bytes| bytes as u64),
        start_ns: start_ns.map_err(|_| wrong("a start that far away is no start".to_owned()))?,
        after,
    })
}

/// The messages that a start names, each the last one above of that name, and the time that it has beside them.
fn arrivals<'t, S: AsRef<str>>(start: &'t str, above: &[(S, S)]) -> Result<(Vec<usize>, Option<&'t str>), String> {
    if !start.contains('>') {
        return Ok((Vec::new(), Some(start)));
    }
    // A name may have such a sign in it.
    let (names, delay) = match start.rsplit_once('+').filter(|(_, delay)| !delay.contains('>')) {
        Some((names, delay)) => (names, Some(delay)),
        None => (start, None),
    };
    let is_it = |(source, destination): &(S, S), name: &str| {
        let rest = name.strip_prefix(source.as_ref()).and_then(|rest| rest.strip_prefix('>'));
        rest == Some(destination.as_ref())
    };
    let find = |name: &str| {
        let at = above.iter().rposition(|pair| is_it(pair, name.trim()));
        at.ok_or_else(|| format!("invalid start '{start}': no message above is {}", name.trim()))
    };
    Ok((names.split(',').map(find).collect::<Result<_, _>>()?, delay))
}

/// Whether a word is a node's name, and not a piece of another format.
fn is_plain(name: &str) -> bool {
    !name.contains(['{', '}', '[', ']', '(', ')', '"', ',', ';', '=', '<', '>'])
}

fn dot(text: &str) -> Result<Graph, GraphError> {
    let mut tokens = Lexer::new(text);
    let mut word = tokens.word("`digraph`")?;
    if word.eq_ignore_ascii_case("strict") {
        word = tokens.word("`digraph`")?;
    }
    if !word.eq_ignore_ascii_case("digraph") {
        return Err(GraphError::Undirected);
    }
    let mut token = tokens.next()?;
    if let (_, Token::Word(_)) = token {
        token = tokens.next()?;
    }
    if token.1 != Token::Mark('{') {
        return Err(tokens.unexpected(token, "`{`"));
    }
    let (mut pairs, mut messages) = (Vec::new(), Vec::new());
    // Subgraphs group what is drawn together: their statements are the graph's.
    let mut depth = 1;
    while depth > 0 {
        match tokens.next()? {
            (_, Token::Mark('}')) => depth -= 1,
            (_, Token::Mark('{')) => depth += 1,
            (_, Token::Mark(';' | ',')) => {}
            (_, Token::Word(word)) if word == "subgraph" => {
                if let Token::Word(_) = tokens.peek()? {
                    tokens.next()?;
                }
                let (at, token) = tokens.next()?;
                if token != Token::Mark('{') {
                    return Err(tokens.unexpected((at, token), "`{` of a subgraph"));
                }
                depth += 1;
            }
            // Of a node, or after the attributes of an edge, which may come in several lists.
            (_, Token::Mark('[')) => drop(tokens.attributes()?),
            (_, Token::Word(name)) => {
                statement(name, &mut tokens, &mut pairs)?;
                let first = messages.len();
                messages.resize(pairs.len(), Message::default());
                if messages.len() > first && tokens.peek()? == Token::Mark('[') {
                    let (at, _) = tokens.next()?;
                    let [bytes, start] = tokens.attributes()?;
                    let above = &pairs[..first];
                    let of_all = message(bytes.as_deref(), start.as_deref(), above, || tokens.place(at))?;
                    messages[first..].fill(of_all);
                }
            }
            other => return Err(tokens.unexpected(other, "a node")),
        }
    }
    Ok(Graph::new(&pairs)?.with_messages(messages))
}

/// What follows a name: nothing, `= value` (an attribute of the graph), or a chain of arrows.
fn statement(first: String, tokens: &mut Lexer<'_>, pairs: &mut Vec<(String, String)>) -> Result<(), GraphError> {
    let mut from = first;
    loop {
        match tokens.peek()? {
            Token::Arrow => {
                tokens.next()?;
                let to = tokens.word("a node after `->`")?;
                pairs.push((from, to.clone()));
                within_bounds(pairs)?;
                from = to;
            }
            Token::Line => return Err(GraphError::Undirected),
            Token::Mark('=') => {
                tokens.next()?;
                return tokens.word("a value after `=`").map(drop);
            }
            Token::Mark(':') => {
                let port = tokens.next()?;
                return Err(tokens.unexpected(port, "a node without a port"));
            }
            _ => return Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Arrow,
    Line,
    Mark(char),
    End,
}

#[derive(Clone)]
struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Lexer { text, chars: text.char_indices().peekable() }
    }

    /// Where a byte is, for who looks for it in an editor.
    fn place(&self, at: usize) -> String {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        format!("line {line}, column {column} of the DOT graph")
    }

    fn unexpected(&self, (at, token): (usize, Token), expected: &'static str) -> GraphError {
        let found = match token {
            // A quoted word may span lines; the message does not.
            Token::Word(word) => format!("'{}'", word.escape_debug()),
            Token::Arrow => "`->`".into(),
            Token::Line => "`--`".into(),
            Token::Mark(mark) => format!("`{}`", mark.escape_debug()),
            Token::End => "the end".into(),
        };
        GraphError::Dot { place: self.place(at), expected, found }
    }

    fn peek(&self) -> Result<Token, GraphError> {
        self.clone().next().map(|(_, token)| token)
    }

    fn word(&mut self, expected: &'static str) -> Result<String, GraphError> {
        match self.next()? {
            (_, Token::Word(word)) => Ok(word),
            other => Err(self.unexpected(other, expected)),
        }
    }

    /// The values of `bytes` and `start` in a list of attributes whose bracket was just read, where they are there.
    fn attributes(&mut self) -> Result<[Option<String>; 2], GraphError> {
        let mut found = [None, None];
        loop {
            let name = match self.next()? {
                (_, Token::Mark(']')) => return Ok(found),
                (at, Token::End) => return Err(self.unexpected((at, Token::End), "`]`")),
                (_, Token::Word(name)) => name,
                _ => continue,
            };
            if self.peek()? != Token::Mark('=') {
                continue;
            }
            self.next()?;
            // Values may be of a kind that is not read, such as HTML: they are skipped with what belongs to them.
            if let (Token::Word(value), Some(at)) =
                (self.peek()?, ["bytes", "start"].iter().position(|known| *known == name))
            {
                found[at] = Some(value);
            }
        }
    }

    fn next(&mut self) -> Result<(usize, Token), GraphError> {
        self.skip_blank();
        let Some((at, first)) = self.chars.next() else { return Ok((self.text.len(), Token::End)) };
        let token = match first {
            '"' => Token::Word(self.quoted(at)?),
            '-' if self.chars.next_if(|(_, next)| *next == '>').is_some() => Token::Arrow,
            '-' if self.chars.next_if(|(_, next)| *next == '-').is_some() => Token::Line,
            first if is_name(first) => {
                let mut word = String::from(first);
                while let Some((_, next)) = self.chars.next_if(|(_, next)| is_name(*next)) {
                    word.push(next);
                }
                Token::Word(word)
            }
            mark => Token::Mark(mark),
        };
        Ok((at, token))
    }

    fn quoted(&mut self, start: usize) -> Result<String, GraphError> {
        let mut word = String::new();
        while let Some((_, next)) = self.chars.next() {
            match next {
                '"' => return Ok(word),
                '\\' => word.extend(self.chars.next().map(|(_, escaped)| escaped)),
                other => word.push(other),
            }
        }
        Err(self.unexpected((start, Token::End), "a closing quote"))
    }

    /// White space, `// ...`, `# ...` and `/* ... */`.
    fn skip_blank(&mut self) {
        while let Some(&(at, next)) = self.chars.peek() {
            let rest = &self.text[at..];
            let skipped = if next.is_whitespace() {
                next.len_utf8()
            } else if next == '#' || rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                return;
            };
            while self.chars.next_if(|(place, _)| *place < at + skipped).is_some() {}
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(text: &str) -> Result<String, GraphError> {
        let graph: Graph = text.parse()?;
        Ok(graph.edges().iter().map(|&edge| graph.label(edge)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn more_edges_than_can_be_followed_are_found_out_while_they_are_read() {
        let edges = "a -> b [bytes=1];\n".repeat(MOST_EDGES);
        assert_eq!(format!("digraph {{ {edges} }}").parse::<Graph>().unwrap().edges().len(), MOST_EDGES);
        for text in [
            format!("digraph {{ {edges} a -> b; [no DOT"),
            format!("digraph {{ a {}", "-> b -> a ".repeat(MOST_EDGES)),
            format!("{}\n(this is no edge)", "a b 1\n".repeat(MOST_EDGES + 1)),
        ] {
            assert_eq!(text.parse::<Graph>(), Err(GraphError::TooManyEdges));
        }
    }

    #[test]
    fn an_edge_list_is_read() {
        assert_eq!(labels("# two senders\na b\n\nc b # the rival\n").unwrap(), "a>b c>b");
        let error = labels("a b\na\n").unwrap_err();
        assert_eq!(error, GraphError::Line { line: 2, text: "a".into() });
        assert!(matches!(labels("a b 1 2s 3"), Err(GraphError::Line { line: 1, .. })));
        assert_eq!(labels("# nothing\n"), Err(GraphError::Empty));
    }

    #[test]
    fn dot_is_read() {
        let text = "strict digraph \"my graph\" { rankdir=LR; node [shape=box, label=\"x ] y\"]\n\
                    a; a -> b -> c [label=\"3\"]; /* back */ c -> \"node 1\" // last\n a -> b }";
        assert_eq!(labels(text).unwrap(), "a>b b>c c>node 1 a>b");
        let grouped = "digraph { subgraph rack_0 { label=\"rack 0\"; a -> b } { b -> c } subgraph { c -> a } a -> c }";
        assert_eq!(labels(grouped).unwrap(), "a>b b>c c>a a>c");
    }

    #[test]
    fn messages_have_sizes_and_starts() {
        let messages = |text: &str| text.parse::<Graph>().map(|graph| graph.messages().to_vec());
        let like = |bytes, start_ns| Message { bytes, start_ns, after: Vec::new() };
        let expected = vec![like(None, 0), like(Some(2048), 0), like(Some(5), 3_000_000)];
        assert_eq!(messages("a b\na c 2KiB\nb c 5 3ms").unwrap(), expected);
        let text = "digraph { a -> b; a -> c [label=\"x\", bytes=\"2KiB\"]; b -> c [bytes=5][color=red] }";
        assert_eq!(messages(text).unwrap(), [like(None, 0), like(Some(2048), 0), like(Some(5), 0)]);
        let text = "digraph { a -> b -> c [start=\"3ms\" bytes=7]; a [bytes=9] }";
        assert_eq!(messages(text).unwrap(), vec![like(Some(7), 3_000_000); 2]);
        for (text, place) in
            [("a b\na c x", "line 2: "), ("digraph { a -> b [start=soon] }", "line 1, column 18 of the DOT graph: ")]
        {
            let said = messages(text).unwrap_err().to_string();
            assert!(said.starts_with(place), "{said}");
        }
    }

    #[test]
    fn a_start_may_be_the_arrival_of_messages_above() {
        let of = |text: &str| -> Result<Vec<(Vec<usize>, u64)>, GraphError> {
            let graph = text.parse::<Graph>()?;
            Ok(graph.messages().iter().map(|of| (of.after.clone(), of.start_ns)).collect())
        };
        let text = "a b\nc b\na b 5\nb d 1MiB a>b\nb e 1MiB a>b,c>b+2ms";
        let expected = [(vec![], 0), (vec![], 0), (vec![], 0), (vec![2], 0), (vec![2, 1], 2_000_000)];
        assert_eq!(of(text).unwrap(), expected);
        let dot = "digraph { a -> b; \"c+1\" -> b; b -> d -> e [start=\"c+1>b+2ms, a>b\"] }";
        assert!(of(dot).is_err(), "a time comes last");
        let dot = "digraph { a -> b; \"c+1\" -> b; b -> d -> e [start=\"a>b, c+1>b\"] }";
        assert_eq!(of(dot).unwrap()[2..], [(vec![0, 1], 0), (vec![0, 1], 0)]);
        for (text, said) in [
            ("a b\nb c 1 b>c", "line 2: invalid start 'b>c': no message above is b>c"),
            ("a b 1 a>b", "no message above is a>b"),
            ("a b\nb c 1 a>b+soon", "line 2: "),
            ("a b\nb c 1 >", "no message above is >"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_dot_we_do_not_read_is_refused() {
        assert_eq!(labels("graph { a -- b }"), Err(GraphError::Undirected));
        assert_eq!(labels("digraph { a -- b }"), Err(GraphError::Undirected));
        let refused = |text| labels(text).unwrap_err().to_string();
        assert_eq!(
            refused("digraph {\n  a -> { b c } }"),
            "line 2, column 8 of the DOT graph: a node after `->` expected, found `{`"
        );
        assert!(
            refused("digraph { a:n -> b }").starts_with("line 1, column 12 of the DOT graph: a node without a port")
        );
        assert!(refused("digraph { subgraph a b }").contains("`{` of a subgraph expected, found 'b'"));
        assert!(refused("digraph { subgraph { a -> b }").ends_with("found the end"));
        assert!(matches!(labels("digraph { a -> b"), Err(GraphError::Dot { found, .. }) if found == "the end"));
        assert!(matches!(labels("digraph { \"a -> b }"), Err(GraphError::Dot { .. })));
        for text in ["digraph g\" x\n y\" b", "digraph { a -> \"b\nc\" }", "digraph { a -> b [bytes=\"1\n2\"] }"] {
            let said = labels(text).unwrap_err().to_string();
            assert!(!said.contains('\n'), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_or_loop(text in "(digraph )?[a-c1+{};\\-> \"#/*\\[\\]=\n]{0,60}") {
            let _ = text.parse::<Graph>();
        }

        #[test]
        fn our_own_dot_is_read_back(edges in 1usize..12, nodes in 2usize..8, seed: u64) {
            let graph = Graph::random(edges, nodes, seed).unwrap();
            let penalties = vec![1.0; edges];
            prop_assert_eq!(super::super::dot(&graph, &penalties).parse::<Graph>(), Ok(graph));
        }
    }
}
