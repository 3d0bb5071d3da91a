//! Documents and stylesheets made by chance, for comparing two ways to run them. Every stylesheet ends: templates of a
//! mode apply templates downwards only, or templates of a later mode.

use std::fmt::Write;

/// A small generator of numbers (xorshift); the same seed gives the same case everywhere.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    fn one<'s>(&mut self, choices: &[&'s str]) -> &'s str {
        choices[self.below(choices.len())]
    }
}

/// A document of a few dozen nodes.
pub fn document(chance: &mut Chance) -> String {
    let mut out = String::from("<r xmlns:p='urn:p'>");
    let mut budget = 30;
    content(chance, &mut out, 0, &mut budget);
    out.push_str("</r>");
    out
}

fn content(chance: &mut Chance, out: &mut String, depth: usize, budget: &mut usize) {
    for _ in 0..chance.below(6) + 1 {
        if *budget == 0 {
            return;
        }
        *budget -= 1;
        match chance.below(9) {
            0 => out.push_str(chance.one(&["7", "12", " x ", "a-b", "&lt;&amp;", "3.5"])),
            1 => out.push_str(chance.one(&["<!--c-->", "<?t d?>", "\n  "])),
            _ => {
                let name = chance.one(&["a", "b", "c", "p:a"]);
                write!(out, "<{name}").expect("a String takes it");
                for attribute in ["x", "y", "p:z"] {
                    if chance.below(3) == 0 {
                        let value = chance.one(&["1", "2", "10", "k", "", "q'&quot;&lt;"]).replace('\'', "");
                        write!(out, " {attribute}='{value}'").expect("a String takes it");
                    }
                }
                out.push('>');
                if depth < 5 {
                    content(chance, out, depth + 1, budget);
                }
                write!(out, "</{name}>").expect("a String takes it");
            }
        }
    }
}

/// A stylesheet of which a good part streams: it mostly looks downwards.
#[allow(dead_code)] // each test uses what it needs
pub fn streamable(chance: &mut Chance) -> String {
    let mut out = String::from(
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:p='urn:p' exclude-result-prefixes='p'>\n",
    );
    if chance.below(3) == 0 {
        out.push_str(
            chance.one(&["<xsl:strip-space elements='*'/>\n", "<xsl:strip-space elements='a r'/>\n"]),
        );
    }
    if chance.below(2) == 0 {
        out.push_str("<xsl:template match='/'><out>");
        downwards(chance, &mut out, 0, 2);
        out.push_str("</out></xsl:template>\n");
    }
    for _ in 0..chance.below(5) + 1 {
        let mode = chance.below(2);
        let pattern = chance.one(&[
            "a",
            "b",
            "c",
            "p:a",
            "*",
            "text()",
            "@x",
            "@*",
            "a/b",
            "r//c",
            "*[@x]",
            "a|b",
            "comment()",
            "node()",
            "a[b]",
            "r",
            "r/*",
            "*[../@x]",
            "processing-instruction()",
            "a[. = 7]",
        ]);
        write!(out, "<xsl:template match='{pattern}'{}>", ["", " mode='m1'"][mode])
            .expect("a String takes it");
        if chance.below(3) == 0 {
            out.push_str("<xsl:param name='v' select='0'/><v><xsl:value-of select='$v'/></v>");
        }
        downwards(chance, &mut out, mode, 3);
        out.push_str("</xsl:template>\n");
    }
    out.push_str("</xsl:stylesheet>\n");
    out
}

/// Instructions that look at the node, its ancestors' names and attributes, and downwards.
fn downwards(chance: &mut Chance, out: &mut String, mode: usize, depth: usize) {
    const SELECT: [&str; 12] = [
        "*",
        "a",
        "a/b",
        "node()",
        "@*|node()",
        "a|b|text()",
        "*[@x]",
        "a[b]",
        "b/c/a",
        "p:a/*",
        "r/*",
        "*[@x = ../@x]/*",
    ];
    for _ in 0..chance.below(3) + 1 {
        match chance.below(if depth == 0 { 6 } else { 12 }) {
            0 => out.push_str("<xsl:apply-templates/>"),
            1 => out.push_str(["<xsl:apply-templates/>", "<xsl:apply-templates mode='m1'/>"][mode]),
            2 => write!(
                out,
                "<w><xsl:value-of select=\"{}\"/></w>",
                chance.one(&[
                    "@x",
                    "../@x",
                    "name()",
                    "position()",
                    "name(..)",
                    "count(ancestor::*)",
                    "ancestor::*[@y][1]/@y",
                    "'k'"
                ])
            )
            .expect("a String takes it"),
            3 => write!(
                out,
                "<u><xsl:value-of select=\"{}\"/></u>",
                chance.one(&[
                    "a",
                    "count(*)",
                    "normalize-space()",
                    "string(.)",
                    "sum(a/@x[number()=number()])",
                    "b[last()]",
                    "*/a"
                ])
            )
            .expect("a String takes it"),
            4 => out.push_str(chance.one(&[
                "<xsl:copy-of select='@*'/>",
                "<xsl:copy-of select='a'/>",
                "text",
                "<l k='{@x}'/>",
            ])),
            5 => write!(out, "<xsl:apply-templates select='{}'/>", chance.one(&SELECT))
                .expect("a String takes it"),
            6 => {
                write!(out, "<xsl:for-each select='{}'>", chance.one(&SELECT)).expect("a String takes it");
                downwards(chance, out, 1, depth - 1);
                out.push_str("</xsl:for-each>");
            }
            7 => {
                let test = chance.one(&["@x", "@y = 2", "self::a", "../@x", "position() = 1", "b", "not(*)"]);
                write!(out, "<xsl:choose><xsl:when test='{test}'>").expect("a String takes it");
                downwards(chance, out, mode, depth - 1);
                out.push_str("</xsl:when><xsl:otherwise>");
                downwards(chance, out, mode, depth - 1);
                out.push_str("</xsl:otherwise></xsl:choose>");
            }
            8 => {
                out.push_str("<xsl:copy><xsl:copy-of select='@*'/>");
                downwards(chance, out, mode, depth - 1);
                out.push_str("</xsl:copy>");
            }
            9 => {
                write!(
                    out,
                    "<xsl:apply-templates mode='m1' select='{}'><xsl:with-param name='v' select='{}'/></xsl:apply-templates>",
                    chance.one(&SELECT),
                    chance.one(&["string(@x)", "position() + 1", "\"p\"", "@x", "count(*)"])
                )
                .expect("a String takes it");
            }
            10 => {
                out.push_str("<xsl:element name='{local-name()}-x'>");
                downwards(chance, out, mode, depth - 1);
                out.push_str("</xsl:element>");
            }
            _ => {
                out.push_str("<e>");
                downwards(chance, out, mode, depth - 1);
                out.push_str("</e>");
            }
        }
    }
}

/// Modes of templates; the last one copies.
const MODES: [&str; 3] = ["", "m1", "m2"];

/// A stylesheet.
#[allow(dead_code)]
pub fn stylesheet(chance: &mut Chance) -> String {
    let mut out = String::from(
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform' xmlns:p='urn:p' exclude-result-prefixes='p'>\n",
    );
    if chance.below(3) == 0 {
        out.push_str(
            chance.one(&["<xsl:strip-space elements='*'/>\n", "<xsl:strip-space elements='a r'/>\n"]),
        );
    }
    let indexed = chance.one(&["a", "*", "b[@x]"]);
    writeln!(out, "<xsl:key name='k' match='{indexed}' use='@x'/>").expect("a String takes it");
    writeln!(out, "<xsl:variable name='g' select='{}'/>", path(chance)).expect("a String takes it");
    out.push_str("<xsl:template match='/'><out>");
    if chance.below(4) == 0 {
        body(chance, &mut out, 0, 2, &mut Vec::new());
    } else {
        out.push_str("<xsl:apply-templates/>");
    }
    out.push_str("</out></xsl:template>\n");
    out.push_str(
        "<xsl:template name='n'><xsl:param name='v' select=\"'none'\"/><n><xsl:value-of select='$v'/></n></xsl:template>\n",
    );
    // In place of the built-in rules: whether those pass parameters on is where processors differ.
    for mode in &MODES[1..] {
        writeln!(
            out,
            "<xsl:template match='*' mode='{mode}' priority='-9'><xsl:apply-templates mode='{mode}'/></xsl:template>"
        )
        .expect("a String takes it");
    }
    for _ in 0..chance.below(6) + 1 {
        let mode = chance.below(MODES.len());
        let pattern = pattern(chance);
        write!(out, "<xsl:template match='{pattern}'").expect("a String takes it");
        if mode > 0 {
            write!(out, " mode='{}'", MODES[mode]).expect("a String takes it");
        }
        if chance.below(5) == 0 {
            write!(out, " priority='{}'", chance.one(&["1", "0.5", "-1", "2"])).expect("a String takes it");
        }
        out.push_str("><xsl:param name='v' select='0'/>");
        body(chance, &mut out, mode, 3, &mut vec!["v"]);
        out.push_str("</xsl:template>\n");
    }
    out.push_str("</xsl:stylesheet>\n");
    out
}

/// Instructions; `variables`: those in scope.
fn body(chance: &mut Chance, out: &mut String, mode: usize, depth: usize, variables: &mut Vec<&'static str>) {
    let outer = variables.len();
    for _ in 0..chance.below(3) + 1 {
        let simple = depth == 0;
        match chance.below(if simple { 6 } else { 15 }) {
            0 => out.push_str("<xsl:if test='self::*'><xsl:apply-templates/></xsl:if>"),
            1 => write!(out, "<xsl:value-of select=\"{}\"/>", value(chance, variables))
                .expect("a String takes it"),
            2 => write!(out, "<e k='{{{}}}'/>", value(chance, variables)).expect("a String takes it"),
            3 => write!(out, "<xsl:copy-of select='{}'/>", path(chance)).expect("a String takes it"),
            4 => out.push_str(chance.one(&["text", "<xsl:text> </xsl:text>", "<xsl:text>&lt;</xsl:text>"])),
            5 => write!(
                out,
                "<xsl:call-template name='n'><xsl:with-param name='v' select=\"{}\"/></xsl:call-template>",
                value(chance, variables)
            )
            .expect("a String takes it"),
            6 => {
                write!(out, "<xsl:for-each select='{}'>", path(chance)).expect("a String takes it");
                sort(chance, out);
                body(chance, out, MODES.len(), depth - 1, variables);
                out.push_str("</xsl:for-each>");
            }
            7 => {
                write!(out, "<xsl:if test=\"{}\">", condition(chance, variables)).expect("a String takes it");
                body(chance, out, mode, depth - 1, variables);
                out.push_str("</xsl:if>");
            }
            8 => {
                out.push_str("<xsl:choose>");
                for _ in 0..chance.below(2) + 1 {
                    write!(out, "<xsl:when test=\"{}\">", condition(chance, variables))
                        .expect("a String takes it");
                    body(chance, out, mode, depth - 1, variables);
                    out.push_str("</xsl:when>");
                }
                out.push_str("<xsl:otherwise>");
                body(chance, out, mode, depth - 1, variables);
                out.push_str("</xsl:otherwise></xsl:choose>");
            }
            9 => {
                let name = ["u", "w"][variables.len() % 2];
                if !variables[outer..].contains(&name) && !variables.contains(&name) {
                    write!(out, "<xsl:variable name='{name}' select=\"{}\"/>", value(chance, variables))
                        .expect("a String takes it");
                    variables.push(name);
                }
            }
            10 => {
                out.push_str("<xsl:copy>");
                if chance.below(2) == 0 {
                    out.push_str("<xsl:copy-of select='@*'/>");
                }
                body(chance, out, mode, depth - 1, variables);
                out.push_str("</xsl:copy>");
            }
            11 => {
                let name = chance.one(&["{local-name()}-x", "f", "{concat(\"n\", count(*))}"]);
                write!(out, "<xsl:element name='{name}'>").expect("a String takes it");
                if chance.below(2) == 0 {
                    write!(
                        out,
                        "<xsl:attribute name='at'><xsl:value-of select=\"{}\"/></xsl:attribute>",
                        value(chance, variables)
                    )
                    .expect("a String takes it");
                }
                body(chance, out, mode, depth - 1, variables);
                out.push_str("</xsl:element>");
            }
            12 if mode + 1 < MODES.len() => {
                write!(out, "<xsl:apply-templates mode='{}' select='{}'>", MODES[mode + 1], path(chance))
                    .expect("a String takes it");
                if chance.below(2) == 0 {
                    write!(out, "<xsl:with-param name='v' select=\"{}\"/>", value(chance, variables))
                        .expect("a String takes it");
                }
                sort(chance, out);
                out.push_str("</xsl:apply-templates>");
            }
            13 => out.push_str(chance.one(&[
                "<xsl:if test='self::*'><xsl:number/></xsl:if>",
                "<xsl:if test='self::*'><xsl:number level='any' count='a|b'/></xsl:if>",
                "<xsl:if test='self::*'><xsl:number level='multiple' format='1.a'/></xsl:if>",
                "<xsl:comment>c</xsl:comment>",
                "<xsl:processing-instruction name='p'>d</xsl:processing-instruction>",
            ])),
            _ => {
                let down = chance.one(&["*", "a", "b|c", "node()", "@*", "text()", "*[2]", "a[@x]"]);
                let mode = match MODES.get(mode) {
                    Some(&"") | None => String::new(),
                    Some(mode) => format!(" mode='{mode}'"),
                };
                write!(out, "<xsl:apply-templates select='{down}'{mode}/>").expect("a String takes it");
            }
        }
    }
    variables.truncate(outer);
}

fn sort(chance: &mut Chance, out: &mut String) {
    if chance.below(4) == 0 {
        out.push_str(chance.one(&[
            "<xsl:sort select='@x' data-type='number'/>",
            "<xsl:sort select='count(.//*)' data-type='number' order='descending'/>",
            "<xsl:sort select='local-name()'/>",
            "<xsl:sort select='name()' order='descending'/><xsl:sort select='@y' data-type='number'/>",
        ]));
    }
}

fn pattern(chance: &mut Chance) -> &'static str {
    chance.one(&[
        "a",
        "b",
        "c",
        "p:a",
        "*",
        "text()",
        "@x",
        "@*",
        "a/b",
        "r//c",
        "*[@x]",
        "a[2]",
        "b[last()]",
        "a|b",
        "comment()",
        "processing-instruction()",
        "node()",
        "a[b]",
        "*[@x=1]",
        "r/*",
        "b[position()=1]/a",
        "p:*",
        "/r",
        "key(\"k\",\"1\")",
        "a[. = 7]",
        "*[not(*)]",
    ])
}

fn path(chance: &mut Chance) -> String {
    let start = chance.one(&["", "", "", "/", "../", "key(\"k\",@x)/"]);
    let mut out = start.to_owned();
    if chance.below(5) == 0 {
        return format!(
            "{}{}",
            chance.one(&["//", ".//"]),
            chance.one(&["a", "*[2]", "@x", "b[@y]", "text()", "c/.."])
        );
    }
    for at in 0..chance.below(2) + 1 {
        if at > 0 && chance.below(3) == 0 {
            // xsltproc loses document order where a reverse axis follows.
            out.push_str(chance.one(&["//a", "//*", "//text()", "//b"]));
            continue;
        }
        if at > 0 {
            out.push('/');
        }
        out.push_str(chance.one(&[
            "*",
            "a",
            "b",
            "c",
            "p:a",
            "node()",
            "text()",
            "a",
            "*",
            "descendant::b",
            "following-sibling::*",
            "preceding-sibling::node()",
            "ancestor::*",
            "parent::a",
            "self::*",
            "descendant-or-self::a",
            "following::a",
            "preceding::*",
            "ancestor-or-self::node()",
        ]));
        if chance.below(3) == 0 {
            out.push_str(chance.one(&[
                "[1]",
                "[last()]",
                "[@x]",
                "[@y=\"2\"]",
                "[position()&gt;1]",
                "[.=7]",
                "[a]",
                "[not(@x)]",
                "[count(*)=2]",
                "[position() mod 2 = 1]",
                "[self::a]",
                "[../@x]",
            ]));
        }
    }
    if chance.below(6) == 0 {
        out.push_str("/@x");
    } else if chance.below(6) == 0 {
        out.push_str("|@*");
    }
    out
}

fn value(chance: &mut Chance, variables: &[&str]) -> String {
    let path = path(chance);
    match chance.below(20) {
        0 => ".".into(),
        1 => "@x".into(),
        2 => format!("count({path})"),
        3 => "name()".into(),
        4 => "position()".into(),
        5 => "last()".into(),
        6 => format!("sum({path}[number()=number()])"),
        7 => format!("concat(@x,'-',string({path}))"),
        8 => format!("substring({path},2,3)"),
        9 => format!("normalize-space({path})"),
        10 => "translate(.,'abc','xy')".into(),
        11 => format!("string-length({path})"),
        12 => "floor(@x div 2)+round(@y * 3)".into(),
        13 => format!("boolean({path})"),
        14 => "count($g)".into(),
        15 => "format-number(count(//*),'#,##0.0')".into(),
        16 => format!("namespace-uri({path})"),
        17 if !variables.is_empty() => format!("${}", variables[chance.below(variables.len())]),
        18 => format!("substring-before({path},'-')"),
        _ => path,
    }
}

fn condition(chance: &mut Chance, variables: &[&str]) -> String {
    let path = path(chance);
    match chance.below(7) {
        0 => path,
        1 => format!("not({path})"),
        2 => format!("{path} = {}", chance.one(&["1", "'k'", "7", "@x", "//@y"])),
        3 => format!("count({path}) &gt; {}", chance.below(3)),
        4 => format!("position() = {}", chance.below(3) + 1),
        5 => format!("starts-with(name(), '{}')", chance.one(&["a", "p"])),
        _ => format!("{} != {}", value(chance, variables), chance.one(&["''", "2", "last()"])),
    }
}
