//! A bound on what one expression of a template may make: the engine works out all items of a range at once where a
//! built-in takes it (`(1..n)?map(…)`), and pads a text to whatever width.
//!
//! So the parsed template is gone through once: the ends of ranges, the bodies of `->` and widths become calls of methods
//! that look at the value and hand it on. A range that a `list` goes through is made item by item, within the time; one
//! that cuts a text or a list is not made at all.

use freemarker::TemplateError;
use freemarker::core::{
    CallTarget, Element, ElementKind, Environment, Expr, ExprKind, MacroDef, RangeKind, StrPart,
};
use freemarker::template::{TModel, Template, TemplateMethodModelEx};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Most items of a range that no `list` goes through.
const MAX_ITEMS: u64 = 100_000;
/// Widest that a text is padded, in characters.
const MAX_WIDTH: i64 = 1_000_000;

/// The names of the methods; no template has them by chance.
const START: &str = "busbar__start";
const END: &str = "busbar__end";
const SIZE: &str = "busbar__size";
const BODY: &str = "busbar__body";
const WIDTH: &str = "busbar__width";
const ENDLESS: &str = "busbar__endless";

/// Puts the calls in.
pub(super) fn bind(template: &mut Template) {
    elements(&mut template.root);
    template.macros.values_mut().for_each(definition);
}

/// The methods for one run of at most so long.
pub(super) fn methods(time: Duration) -> Vec<(String, TModel)> {
    let now = Instant::now();
    let run = Rc::new(Run { starts: RefCell::default(), end: now.checked_add(time).unwrap_or(now), time });
    [START, END, SIZE, BODY, WIDTH, ENDLESS]
        .into_iter()
        .map(|name| (name.to_owned(), TModel::from_method(Method { name, run: Rc::clone(&run) })))
        .collect()
}

struct Run {
    /// Of the ranges whose ends are still worked out, the innermost last.
    starts: RefCell<Vec<i64>>,
    end: Instant,
    time: Duration,
}

struct Method {
    name: &'static str,
    run: Rc<Run>,
}

impl TemplateMethodModelEx for Method {
    fn exec(&self, _: &mut Environment<'_>, arguments: Vec<TModel>) -> Result<TModel, TemplateError> {
        let Some(value) = arguments.into_iter().next() else {
            return Err(TemplateError::misc("a value is missing"));
        };
        let number = || value.get_number().map(|number| number.as_i64().unwrap_or(i64::MAX));
        match self.name {
            ENDLESS => {
                let why =
                    "a range without an end is for a `list` to go through, and to cut texts and lists by";
                return Err(TemplateError::misc(why));
            }
            START => self.run.starts.borrow_mut().push(number()?),
            END | SIZE => {
                let start = self.run.starts.borrow_mut().pop().unwrap_or_default();
                let items = match self.name {
                    END => number()?.abs_diff(start),
                    _ => number()?.unsigned_abs(),
                };
                if items > MAX_ITEMS {
                    return Err(TemplateError::misc(format!(
                        "a range of {items} items is too long: only a `list` goes through more than {MAX_ITEMS}"
                    )));
                }
            }
            WIDTH if number()? > MAX_WIDTH => {
                return Err(TemplateError::misc(format!(
                    "a text is padded to {MAX_WIDTH} characters at most"
                )));
            }
            BODY if Instant::now() > self.run.end => {
                return Err(TemplateError::misc(super::bounded::too_long(self.run.time)));
            }
            _ => {}
        }
        Ok(value)
    }
}

/// The expression as the argument of a method.
fn ask(method: &str, expression: &mut Expr) {
    let span = expression.span;
    let nothing = Expr { kind: ExprKind::Bool(false), span };
    let own = std::mem::replace(expression, nothing);
    let callee = Box::new(Expr { kind: ExprKind::Ident(method.to_owned()), span });
    expression.kind = ExprKind::Call { callee, args: vec![own] };
}

fn expressions<'e>(all: impl IntoIterator<Item = &'e mut Expr>) {
    all.into_iter().for_each(expression);
}

fn expression(own: &mut Expr) {
    match &mut own.kind {
        ExprKind::Str(_)
        | ExprKind::Num(_)
        | ExprKind::Bool(_)
        | ExprKind::Ident(_)
        | ExprKind::BuiltinVar(_) => {}
        ExprKind::InterpStr(parts) => expressions(parts.iter_mut().filter_map(|part| match part {
            StrPart::Interp(inner) => Some(&mut **inner),
            StrPart::Text(_) => None,
        })),
        ExprKind::Dot { target, .. }
        | ExprKind::UnaryMinus(target)
        | ExprKind::Not(target)
        | ExprKind::Exists(target)
        | ExprKind::Paren(target) => expression(target),
        ExprKind::DynKey { target, key } => {
            expression(target);
            of_range(key);
        }
        ExprKind::Call { callee, args } => {
            expression(callee);
            expressions(args);
        }
        ExprKind::Add(a, b)
        | ExprKind::Sub(a, b)
        | ExprKind::Mul(a, b)
        | ExprKind::Div(a, b)
        | ExprKind::Mod(a, b)
        | ExprKind::Eq(a, b)
        | ExprKind::NotEq(a, b)
        | ExprKind::Gt(a, b)
        | ExprKind::Gte(a, b)
        | ExprKind::Lt(a, b)
        | ExprKind::Lte(a, b)
        | ExprKind::And(a, b)
        | ExprKind::Or(a, b) => expressions([&mut **a, b]),
        ExprKind::Range { start, end, kind } => {
            expression(start);
            if let Some(end) = end {
                expression(end);
                ask(START, start);
                ask(if *kind == RangeKind::SizeLimited { SIZE } else { END }, end);
            } else {
                ask(ENDLESS, start);
            }
        }
        ExprKind::Default { target, default } => {
            expression(target);
            expressions(default.as_deref_mut());
        }
        ExprKind::BuiltIn { target, name, args } => {
            expression(target);
            expressions(args.iter_mut().flatten());
            if matches!(&**name, "left_pad" | "right_pad" | "leftPad" | "rightPad") {
                args.iter_mut().flatten().take(1).for_each(|width| ask(WIDTH, width));
            }
        }
        ExprKind::ListLit(items) => expressions(items),
        ExprKind::HashLit(members) => {
            for (name, value) in members {
                expressions([name, value]);
            }
        }
        ExprKind::Lambda { body, .. } => {
            expression(body);
            ask(BODY, body);
        }
    }
}

/// As [`expression`], where a range may be as long as it likes: its items are not made.
fn of_range(own: &mut Expr) {
    match &mut own.kind {
        ExprKind::Range { start, end, .. } => {
            expression(start);
            expressions(end.as_deref_mut());
        }
        _ => expression(own),
    }
}

fn definition(own: &mut MacroDef) {
    expressions(own.params.iter_mut().filter_map(|parameter| parameter.default.as_mut()));
    elements(&mut own.body);
}

fn elements(all: &mut [Element]) {
    for own in all {
        element(own);
    }
}

fn element(own: &mut Element) {
    match &mut own.kind {
        ElementKind::Text { .. }
        | ElementKind::Break
        | ElementKind::Continue
        | ElementKind::Flush
        | ElementKind::Comment { .. }
        | ElementKind::FtlHeader { .. }
        | ElementKind::TrimLineStart
        | ElementKind::NoTrimLineStart
        | ElementKind::TrimLineEnd
        | ElementKind::LeftTrimLine
        | ElementKind::Fallback
        | ElementKind::RawText(_)
        | ElementKind::NoParse { .. } => {}
        ElementKind::Interpolation { expr, .. } | ElementKind::Setting { value: expr, .. } => {
            expression(expr)
        }
        ElementKind::If { cond, then, else_ } => {
            expression(cond);
            elements(then);
            else_.iter_mut().for_each(|own| elements(own));
        }
        ElementKind::List { seq, body, else_, .. } => {
            of_range(seq);
            elements(body);
            else_.iter_mut().for_each(|own| elements(own));
        }
        ElementKind::Items { body, .. }
        | ElementKind::Sep { body }
        | ElementKind::Assignments(body)
        | ElementKind::Trim(body)
        | ElementKind::NoEscape(body)
        | ElementKind::AutoEsc(body)
        | ElementKind::NoAutoEsc(body)
        | ElementKind::Compress(body) => elements(body),
        ElementKind::Assign { expr, namespace, .. } => {
            expression(expr);
            expressions(namespace);
        }
        ElementKind::BlockAssign { body, namespace, .. } => {
            elements(body);
            expressions(namespace);
        }
        ElementKind::Global { expr, body, .. } | ElementKind::Local { expr, body, .. } => {
            expressions(expr);
            body.iter_mut().for_each(|own| elements(own));
        }
        ElementKind::Macro { def } => definition(def),
        ElementKind::Call { callee, args, body, .. } => {
            if let CallTarget::Expr(callee) = callee {
                expression(callee);
            }
            expressions(args.iter_mut().map(|(_, value)| value));
            body.iter_mut().for_each(|own| elements(own));
        }
        ElementKind::Nested { args, body } => {
            expressions(args);
            body.iter_mut().for_each(|own| elements(own));
        }
        ElementKind::Switch { expr, cases, default, .. } => {
            expression(expr);
            for case in cases {
                expression(&mut case.value);
                elements(&mut case.body);
            }
            default.iter_mut().for_each(|own| elements(own));
        }
        ElementKind::Attempt { try_, recover } => {
            elements(try_);
            elements(recover);
        }
        ElementKind::Return { expr } | ElementKind::Stop { msg: expr } => expressions(expr),
        ElementKind::Include { path, attrs } => {
            expression(path);
            expressions(attrs.iter_mut().map(|(_, value)| value));
        }
        ElementKind::Import { path, .. } => expression(path),
        ElementKind::Escape { expr, body }
        | ElementKind::OutputFormat { name: expr, body }
        | ElementKind::Transform { expr, body }
        | ElementKind::On { expr, body } => {
            expression(expr);
            elements(body);
        }
        ElementKind::Visit { expr, using } | ElementKind::Recurse { expr, using } => {
            expressions(expr);
            expressions(using);
        }
    }
}
