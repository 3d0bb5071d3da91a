//! XPath: parse, compile, run on a tree or on the event stream with early decision
