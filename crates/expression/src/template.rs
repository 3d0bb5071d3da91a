//! Texts with expressions in them.

/// A text cut at its expressions.
#[derive(Debug)]
pub struct Template<E> {
    /// The pieces, in order.
    pub pieces: Vec<Piece<E>>,
}

/// One piece of a template.
#[derive(Debug)]
pub enum Piece<E> {
    /// As it is.
    Text(String),
    /// An expression.
    Expression(E),
}

impl<E> Template<E> {
    /// Cuts a text. `compile` gets each expression with `${` and `}`, and where it begins.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn cut<X>(
        text: &str,
        mut compile: impl FnMut(&str, usize) -> Result<E, X>,
    ) -> Result<Template<E>, X> {
        let mut pieces = Vec::new();
        let mut done = 0;
        while let Some(open) = text[done..].find("${").map(|at| at + done) {
            let Some(length) = expression_length(&text[open..]) else { break };
            if open > done {
                pieces.push(Piece::Text(text[done..open].to_owned()));
            }
            pieces.push(Piece::Expression(compile(&text[open..open + length], open)?));
            done = open + length;
        }
        if done < text.len() {
            pieces.push(Piece::Text(text[done..].to_owned()));
        }
        Ok(Template { pieces })
    }

    /// The expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &E> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Expression(expression) => Some(expression),
            Piece::Text(_) => None,
        })
    }
}

/// Where the first `${` of a text is that no `}` follows.
pub fn unclosed(text: &str) -> Option<usize> {
    let mut done = 0;
    while let Some(open) = text[done..].find("${").map(|at| at + done) {
        match expression_length(&text[open..]) {
            Some(length) => done = open + length,
            None => return Some(open),
        }
    }
    None
}

/// How long the expression is that a text beginning with `${` begins with: to the first `}` outside of quotes, or where
/// quotes do not close, to the first `}`. `None` if there is none.
pub fn expression_length(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut bytes = text.bytes().enumerate().skip(2);
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'}') => return Some(at + 1),
            (None, _) => {}
        }
    }
    text.find('}').map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_closed_is_found() {
        for (text, place) in [("", None), ("${a} $ {b", None), ("a ${b", Some(2)), ("${a}${b", Some(4))] {
            assert_eq!(unclosed(text), place, "{text}");
        }
    }

    #[test]
    fn texts_are_cut_at_their_expressions() {
        for (text, wanted) in [
            ("", ""),
            ("plain $1 $ {x}", "plain $1 $ {x}"),
            ("a ${b} c", "a |<${b}>| c"),
            ("${a}${b}", "<${a}>|<${b}>"),
            (r#"{"x":"${a + "}" + b}"}"#, r#"{"x":"|<${a + "}" + b}>|"}"#),
            ("${open", "${open"),
            ("it's ${a} isn't", "it's |<${a}>| isn't"),
            ("${'a} b", "<${'a}>| b"),
        ] {
            let template: Template<String> =
                Template::cut::<()>(text, |expression, _| Ok(expression.to_owned())).unwrap();
            let pieces = template.pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Expression(expression) => format!("<{expression}>"),
            });
            assert_eq!(pieces.collect::<Vec<_>>().join("|"), wanted, "{text}");
        }
    }
}
