//! Source spans, labels, rule ids and the rendering of errors
