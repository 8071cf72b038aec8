//! Graphs from text: an edge list, or the part of DOT that says who sends to whom.
//!
//! DOT: `digraph` with node statements, chains (`a -> b -> c`), attribute lists and comments. Attributes are skipped;
//! subgraphs and ports are not understood and said to be an error rather than misread.

use std::iter::Peekable;
use std::str::{CharIndices, FromStr};

use super::{Graph, GraphError};

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
    let mut pairs = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        match words[..] {
            [] => {}
            [source, destination] if [source, destination].iter().all(|name| is_plain(name)) => {
                pairs.push((source, destination));
            }
            _ => return Err(GraphError::Line { line: at + 1, text: line.trim().to_owned() }),
        }
    }
    Graph::new(&pairs)
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
        return Err(token.unexpected("`{`"));
    }
    let mut pairs = Vec::new();
    loop {
        match tokens.next()? {
            (_, Token::Mark('}')) => break,
            (_, Token::Mark(';' | ',')) => {}
            (_, Token::Mark('[')) => tokens.skip_attributes()?,
            (_, Token::Word(name)) => statement(name, &mut tokens, &mut pairs)?,
            other => return Err(other.unexpected("a node")),
        }
    }
    Graph::new(&pairs)
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
                from = to;
            }
            Token::Line => return Err(GraphError::Undirected),
            Token::Mark('=') => {
                tokens.next()?;
                return tokens.word("a value after `=`").map(drop);
            }
            Token::Mark('{' | ':') => return Err(tokens.next()?.unexpected("no subgraph and no port")),
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

trait Unexpected {
    fn unexpected(self, expected: &'static str) -> GraphError;
}

impl Unexpected for (usize, Token) {
    fn unexpected(self, expected: &'static str) -> GraphError {
        let found = match self.1 {
            Token::Word(word) => format!("'{word}'"),
            Token::Arrow => "`->`".into(),
            Token::Line => "`--`".into(),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end".into(),
        };
        GraphError::Dot { at: self.0, expected, found }
    }
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

    fn peek(&self) -> Result<Token, GraphError> {
        self.clone().next().map(|(_, token)| token)
    }

    fn word(&mut self, expected: &'static str) -> Result<String, GraphError> {
        match self.next()? {
            (_, Token::Word(word)) => Ok(word),
            other => Err(other.unexpected(expected)),
        }
    }

    fn skip_attributes(&mut self) -> Result<(), GraphError> {
        loop {
            match self.next()? {
                (_, Token::Mark(']')) => return Ok(()),
                (at, Token::End) => return Err((at, Token::End).unexpected("`]`")),
                _ => {}
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
        Err((start, Token::End).unexpected("a closing quote"))
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
    fn an_edge_list_is_read() {
        assert_eq!(labels("# two senders\na b\n\nc b # the rival\n").unwrap(), "a>b c>b");
        let error = labels("a b\na b c\n").unwrap_err();
        assert_eq!(error, GraphError::Line { line: 2, text: "a b c".into() });
        assert_eq!(labels("# nothing\n"), Err(GraphError::Empty));
    }

    #[test]
    fn dot_is_read() {
        let text = "strict digraph \"my graph\" { rankdir=LR; node [shape=box, label=\"x ] y\"]\n\
                    a; a -> b -> c [label=\"3\"]; /* back */ c -> \"node 1\" // last\n a -> b }";
        assert_eq!(labels(text).unwrap(), "a>b b>c c>node 1 a>b");
    }

    #[test]
    fn what_dot_we_do_not_read_is_refused() {
        assert_eq!(labels("graph { a -- b }"), Err(GraphError::Undirected));
        assert_eq!(labels("digraph { a -- b }"), Err(GraphError::Undirected));
        assert!(matches!(labels("digraph { a -> { b c } }"), Err(GraphError::Dot { .. })));
        assert!(matches!(labels("digraph { a -> b"), Err(GraphError::Dot { found, .. }) if found == "the end"));
        assert!(matches!(labels("digraph { \"a -> b }"), Err(GraphError::Dot { .. })));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_or_loop(text in "(digraph )?[a-c{};\\-> \"#/*\\[\\]=\n]{0,60}") {
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
