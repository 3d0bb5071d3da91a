//! The rules, a file each.

mod aggregate_cannot_complete;
mod answer_is_lost;
mod call_without_timeout;
mod circular_sequence;
mod condition_never_holds;
mod deprecated_form;
mod duplicate_case;
mod empty_answer;
mod expression_as_text;
mod filter_without_else;
mod json_of_xml;
mod message_is_lost;
mod misspelt_name;
mod misspelt_property;
mod number_in_property;
mod property_scope;
mod template_parameter;
mod unknown_media_type;
mod unknown_scope;
mod unreachable_resource;
mod unreachable_step;

use crate::Rule;

/// All rules, in the order in which they run.
#[rustfmt::skip] // one line each
pub const RULES: &[&Rule] = &[
    &aggregate_cannot_complete::RULE,
    &answer_is_lost::RULE,
    &call_without_timeout::RULE,
    &circular_sequence::RULE,
    &condition_never_holds::RULE,
    &deprecated_form::RULE,
    &duplicate_case::RULE,
    &empty_answer::RULE,
    &expression_as_text::RULE,
    &filter_without_else::RULE,
    &json_of_xml::RULE,
    &message_is_lost::RULE,
    &misspelt_name::RULE,
    &misspelt_property::RULE,
    &number_in_property::RULE,
    &property_scope::RULE,
    &template_parameter::RULE,
    &unknown_media_type::RULE,
    &unknown_scope::RULE,
    &unreachable_resource::RULE,
    &unreachable_step::RULE,
];
