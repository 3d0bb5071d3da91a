//! The dynamic context of inner instructions: the current group, the groups of a regular expression, tunnel parameters.

use super::{Engine, Focus, Frame, Res};
use crate::model::{Argument, Place};
use crate::names::Name;
use std::sync::Arc;
use xpath::Value;

/// The dynamic context of inner instructions: the current group, the groups of a regular expression, the
/// tunnel parameters.
#[derive(Clone, Default)]
pub(super) struct Dynamic {
    /// The current group, and its key; `None`: there is none.
    pub group: Option<Value>,
    pub key: Option<Value>,
    pub captures: Arc<[Box<str>]>,
    pub tunnel: Arc<[(Name, Value)]>,
    pub merge_key: Value,
    /// The current group of `xsl:merge`.
    pub merged: Option<MergeGroup>,
    /// The URI of the result of `xsl:result-document` that is being written; `None`: it has none, or a value is being made.
    pub output: Option<Arc<str>>,
}

/// A group of `xsl:merge`.
#[derive(Clone)]
pub(super) struct MergeGroup {
    pub whole: Value,
    /// What is from each source with a name.
    pub named: Arc<[(Box<str>, Value)]>,
}

/// [`Focus::dynamic`] without such a context.
pub(super) const NO_DYNAMIC: u32 = u32::MAX;

impl Engine<'_> {
    pub(super) fn dynamic(&self, number: u32) -> Option<Arc<Dynamic>> {
        if number == NO_DYNAMIC {
            return None;
        }
        self.dynamics.lock().ok()?.get(number as usize).cloned()
    }

    /// Runs `f` with a changed dynamic context.
    pub(super) fn with_dynamic<R>(
        &self,
        focus: Focus,
        change: impl FnOnce(&mut Dynamic),
        f: impl FnOnce(Focus) -> Res<R>,
    ) -> Res<R> {
        let mut dynamic = self.dynamic(focus.dynamic).map_or_else(Dynamic::default, |d| (*d).clone());
        change(&mut dynamic);
        let failed = || self.fail(Place::default(), "the state of the transformation is lost".into());
        let number = {
            let mut dynamics = self.dynamics.lock().map_err(|_| failed())?;
            dynamics.push(Arc::new(dynamic));
            (dynamics.len() - 1) as u32
        };
        let result = f(Focus { dynamic: number, ..focus });
        if let Ok(mut dynamics) = self.dynamics.lock() {
            dynamics.truncate(number as usize);
        }
        result
    }

    /// Runs `f` in temporary output state: what is made is a value, not part of a result.
    pub(super) fn temporarily<R>(&self, focus: Focus, f: impl FnOnce(Focus) -> Res<R>) -> Res<R> {
        if focus.dynamic == NO_DYNAMIC || self.dynamic(focus.dynamic).is_none_or(|d| d.output.is_none()) {
            return f(focus);
        }
        self.with_dynamic(focus, |dynamic| dynamic.output = None, f)
    }

    /// Copies the dynamic context of another engine, with the same numbers.
    pub(super) fn take_dynamics(&mut self, from: &Engine<'_>) {
        if let (Ok(dynamics), Ok(other)) = (self.dynamics.get_mut(), from.dynamics.lock()) {
            dynamics.clone_from(&other);
        }
    }

    /// Runs `f` with the arguments of a call: tunnel parameters go into the dynamic context, the others are passed.
    pub(super) fn with_arguments<R>(
        &self,
        arguments: &[Argument],
        focus: Focus,
        frame: &mut Frame,
        f: impl FnOnce(&[(Name, Value)], Focus, &mut Frame) -> Res<R>,
    ) -> Res<R> {
        let mut params = Vec::new();
        let mut tunnel = Vec::new();
        for argument in arguments {
            let value = self.binding(&argument.value, focus, frame, argument.place)?;
            if argument.tunnel { &mut tunnel } else { &mut params }.push((argument.name, value));
        }
        if tunnel.is_empty() {
            return f(&params, focus, frame);
        }
        let change = |dynamic: &mut Dynamic| {
            for (name, value) in dynamic.tunnel.iter() {
                if !tunnel.iter().any(|(n, _)| n == name) {
                    tunnel.push((*name, value.clone()));
                }
            }
            dynamic.tunnel = tunnel.into();
        };
        self.with_dynamic(focus, change, |focus| f(&params, focus, frame))
    }
}
