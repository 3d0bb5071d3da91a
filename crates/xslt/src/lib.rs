//! XSLT: stylesheets compiled once, run on trees
