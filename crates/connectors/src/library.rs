//! Operations of libraries: sequence templates, with the child elements as their parameters.

use crate::connection::{all, described, report_missing};
use crate::parameter::{Form, Parameters};
use config::{Element, Key, LibraryOperation};
use diagnostics::Diagnostic;
use flow::mediator::Parameter;
use flow::{Compiled, Compiler, Context, Entry, Fault, Flow, KeyValue, ListId, Mediator, Need};
use message::Value;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// Deepest nesting of operations in templates of operations.
const DEEPEST: usize = 32;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The operation that an element calls, if a library has it and it needs no Java; else the reason.
pub(crate) fn compile(element: &Element, compiler: &mut Compiler<'_>) -> Option<Result<Compiled, String>> {
    let operation = match find(element.local(), compiler)? {
        Ok(operation) => operation,
        Err(class) => return Some(Err(format!("its template runs the Java class `{class}`"))),
    };
    if DEPTH.get() >= DEEPEST {
        return Some(Err(format!("templates call each other more than {DEEPEST} deep")));
    }
    DEPTH.set(DEPTH.get() + 1);
    let call = call(element, &operation, compiler);
    let ahead = call.as_ref().and_then(|_| Ahead::of(element, compiler));
    DEPTH.set(DEPTH.get() - 1);
    Some(match (call, ahead) {
        (Some(call), Some(Ok(ahead))) => {
            let name = "a connection and its operation";
            let both: Vec<Box<dyn Mediator>> = vec![Box::new(ahead), Box::new(call)];
            Ok(Some(Box::new(Both(compiler.list_of(element, name, element.local(), both)))))
        }
        (Some(_), Some(Err(why))) => Err(why),
        (call, _) => Ok(call.map(|call| Box::new(call) as Box<dyn Mediator>)),
    })
}

/// Names of the operations of a library.
pub(crate) fn names(library: &str, compiler: &Compiler<'_>) -> Vec<String> {
    let operations = compiler.configuration.libraries_in_use().flat_map(|l| l.operations.iter());
    let prefix = format!("{library}.");
    operations.map(|operation| operation.name.clone()).filter(|name| name.starts_with(&prefix)).collect()
}

/// An operation, or the Java class that it runs; `None`: no library has it.
fn find(name: &str, compiler: &Compiler<'_>) -> Option<Result<LibraryOperation, String>> {
    let mut operations = compiler.configuration.libraries_in_use().flat_map(|l| l.operations.iter());
    let operation = operations.find(|operation| operation.name == name)?;
    Some(operation.class.clone().map_or_else(|| Ok(operation.clone()), Err))
}

/// The connection that `configKey` names: the library's `init` runs in front of the operation, with the values of the local entry.
struct Ahead {
    init: String,
    key: KeyValue,
    by_name: HashMap<String, Call>,
}

impl Ahead {
    /// `None`: there is no `configKey`, or an error was recorded; an error: the reason why `init` is not executable.
    fn of(element: &Element, compiler: &mut Compiler<'_>) -> Option<Result<Ahead, String>> {
        let attribute = element.attribute("configKey")?;
        let library = element.local().split('.').next().unwrap_or_default();
        let init = format!("{library}.init");
        let Some(found) = find(&init, compiler) else {
            let message = format!("`configKey` has no effect: the library `{library}` has no `init`");
            compiler.warning("unknown-connection", message, attribute.value_span, "ignored");
            return None;
        };
        let operation = match found {
            Ok(operation) => operation,
            Err(class) => {
                return Some(Err(format!("the template of `{init}` runs the Java class `{class}`")));
            }
        };
        let (key, entries) =
            match config::Value::parse(attribute.value.trim(), attribute.value_span, element.scope()) {
                config::Value::Literal(Key { value, span })
                | config::Value::Deferred(Key { value, span }) => {
                    let entry = described(&value, library, compiler);
                    if entry.is_none() {
                        report_missing(&Key { value: value.clone(), span }, library, compiler);
                    }
                    let entries = entry.map(|entry| (value.clone(), entry)).into_iter().collect();
                    (KeyValue::Literal(Arc::from(value)), entries)
                }
                config::Value::Expression(expression) => {
                    let key =
                        compiler.expression_text(&expression.source, expression.span, &expression.scope)?;
                    (KeyValue::Dynamic(key), all(library, compiler))
                }
            };
        let mut by_name = HashMap::new();
        for (name, entry) in entries {
            by_name.insert(name, call(&entry, &operation, compiler)?);
        }
        Some(Ok(Ahead { init, key, by_name }))
    }
}

impl Mediator for Ahead {
    fn need(&self) -> Need {
        self.by_name.values().map(Call::need).max().unwrap_or(Need::Nothing).max(self.key.need())
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        // The parameters of `init` are the same for each.
        self.by_name.values().take(1).flat_map(Call::lists).collect()
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let key = self.key.resolve(context)?.unwrap_or_default();
        match self.by_name.get(key.trim()) {
            Some(call) => call.mediate(context),
            None => Err(Fault::new(format!(
                "there is no connection `{}`: it is a local entry with `<{}>` in it",
                key.trim(),
                self.init
            ))),
        }
    }
}

/// A call of a template.
struct Call {
    operation: String,
    list: ListId,
    declared: Vec<config::TemplateParameter>,
    given: Parameters,
}

fn call(element: &Element, operation: &LibraryOperation, compiler: &mut Compiler<'_>) -> Option<Call> {
    let given = Parameters::compile(element, |_| Form::Json, compiler)?;
    let template = &operation.template;
    let names: Vec<&str> = template.parameters.iter().map(|p| p.name.value.as_str()).collect();
    for child in
        element.elements().filter(|child| !names.contains(&child.local()) && !child.is("description"))
    {
        let message = format!("`{}` has no effect inside of `{}`", child.local(), element.local());
        let found = Diagnostic::warning("ignored-element", message)
            .at(child.name_span(), "ignored")
            .did_you_mean(child.local(), names.iter().copied());
        compiler.diagnostics.push(found);
    }
    let list = compiler.operation(operation);
    let declared = template.parameters.clone();
    Some(Call { operation: element.local().to_owned(), list, declared, given })
}

impl Mediator for Call {
    fn need(&self) -> Need {
        self.given.need()
    }

    fn reason(&self) -> String {
        self.given.reason()
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![(self.operation.clone(), self.list)]
    }

    fn mediate(&self, context: &mut Context) -> Result<Flow, Fault> {
        let mut parameters = Vec::with_capacity(self.declared.len());
        for declared in &self.declared {
            let name = declared.name.value.as_str();
            let value = match self.given.get(name) {
                Some(_) => self.given.value(name, context)?,
                None if declared.mandatory => {
                    let why = format!("the parameter `{name}` of {} is not given", self.operation);
                    return Err(Fault::with_code(flow::fault::code::TEMPLATE_PARAMETER, why));
                }
                None => declared.default.as_deref().map(Value::from),
            };
            parameters.extend(value.map(|value| (Arc::from(name), Parameter::Value(value))));
        }
        let entry = Entry { on_error: None, parameters: Some(parameters), absorbs: false };
        Ok(Flow::EnterWith(self.list, entry))
    }
}

/// A connection, and the operation that uses it.
struct Both(ListId);

impl Mediator for Both {
    fn need(&self) -> Need {
        Need::Nothing
    }

    fn lists(&self) -> Vec<(String, ListId)> {
        vec![("with its connection".to_owned(), self.0)]
    }

    fn mediate(&self, _: &mut Context) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}
