//! The white space that tags leave, and what `<#t>` and the like take of it.

use super::{Placed, Token};

/// Takes the white space and the line break of lines that consist of tags.
pub(super) fn strip_white_space(tokens: &mut [Placed]) {
    /// Whether a token leaves the line to tags, seen from a tag on the left (`true`) or right of it.
    fn is_blank(text: &str, from_left: bool) -> bool {
        let part = if from_left { text.split('\n').next() } else { text.rsplit('\n').next() };
        part.unwrap_or("").trim().is_empty()
    }
    let leaves = |placed: &Placed, from_left: bool| match &placed.token {
        Token::Text(text) => is_blank(text, from_left),
        Token::Output(_) | Token::Number(..) => false,
        // These keep what they stand in.
        Token::Trim("nt") => false,
        _ => true,
    };
    let is_tag =
        |placed: &Placed| !matches!(placed.token, Token::Text(_) | Token::Output(_) | Token::Number(..));
    // For each text: how much of its beginning and of its end goes.
    let mut cuts = Vec::new();
    for at in 0..tokens.len() {
        let Token::Text(text) = &tokens[at].token else { continue };
        let first_line = text.find('\n').map(|newline| newline + 1);
        let last_line = text.rfind('\n').map_or(0, |newline| newline + 1);
        let mut front = 0;
        let line = tokens[at].place.line;
        if let Some(end) = first_line
            && text[..end].trim().is_empty()
        {
            // Back along the line: tags only, and at least one.
            let mut tag = false;
            let mut all = true;
            for before in tokens[..at].iter().rev() {
                if before.end != line {
                    break;
                }
                all &= leaves(before, false);
                tag |= is_tag(before);
                let breaks = matches!(&before.token, Token::Text(text) if text.contains('\n'));
                if !all || breaks || before.place.line != line {
                    break;
                }
            }
            if tag && all {
                front = end;
            }
        }
        let mut back = 0;
        let starts_line = text.contains('\n') || tokens[at].place.column == 1;
        if starts_line && !text[last_line..].is_empty() && text[last_line..].trim().is_empty() {
            let line = line + text.matches('\n').count() as u32;
            let mut tag = false;
            let mut all = true;
            for behind in &tokens[at + 1..] {
                if behind.place.line != line {
                    break;
                }
                all &= leaves(behind, true);
                tag |= is_tag(behind);
                let breaks = matches!(&behind.token, Token::Text(text) if text.contains('\n'));
                if !all || breaks || behind.end != line {
                    break;
                }
            }
            if tag && all {
                back = text.len() - last_line;
            }
        }
        if front + back > 0 {
            cuts.push((at, front, back));
        }
    }
    for (at, front, back) in cuts {
        if let Token::Text(text) = &mut tokens[at].token {
            let end = (text.len() - back).max(front);
            *text = text[front..end].to_owned();
        }
    }
}

/// Carries `<#t>`, `<#lt>` and `<#rt>` out: the white space at the beginning and end of their line goes.
pub(super) fn trim(tokens: &mut [Placed]) {
    let marks: Vec<(usize, &'static str)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, placed)| match placed.token {
            Token::Trim(which) => Some((at, which)),
            _ => None,
        })
        .collect();
    for (mark, which) in marks {
        let line = tokens[mark].place.line;
        if matches!(which, "t" | "lt") {
            // The first text of the line.
            for at in (0..mark).rev() {
                let (start, end) = (tokens[at].place.line, tokens[at].end);
                if let Token::Text(text) = &mut tokens[at].token {
                    let from = text.rfind('\n').map_or(0, |newline| newline + 1);
                    let begins = from > 0 || at == 0 || start < line;
                    if begins {
                        let kept = text[from..].trim_start().to_owned();
                        text.truncate(from);
                        text.push_str(&kept);
                        break;
                    }
                }
                if start < line && end < line {
                    break;
                }
            }
        }
        if matches!(which, "t" | "rt") {
            for placed in &mut tokens[mark + 1..] {
                if placed.place.line != line {
                    break;
                }
                if let Token::Text(text) = &mut placed.token
                    && let Some(newline) = text.find('\n')
                {
                    let kept = text[..newline].trim_end().to_owned();
                    *text = kept + &text[newline + 1..];
                    break;
                }
            }
        }
    }
}
