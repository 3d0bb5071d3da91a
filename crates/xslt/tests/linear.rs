//! What a transformation costs grows with its document, counted in units of work ([`meter`]).
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_xslt::{CompileOptions, RunOptions, Stylesheet};
use xml::{Document, ParseOptions};

/// Units for a document of so many elements, of which every second has another name.
fn units(body: &str, elements: usize) -> u64 {
    let sheet = format!(
        "<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'><x:key name='k' match='a' use='.'/>\
         <x:template match='/'><r><x:for-each select='//a|//b'>{body}</x:for-each></r></x:template></x:stylesheet>"
    );
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
    let text = format!("<r>{}</r>", "<a>1</a><b><c/></b>".repeat(elements / 2));
    let input = Document::parse(text, &ParseOptions::default()).unwrap();
    let run = || sheet.transform(&input, Document::ROOT, &[], &RunOptions::default()).map(|_| ());
    let (result, used) = meter::within(std::time::Duration::from_secs(600), None, run);
    result.unwrap();
    used.units
}

#[test]
fn twice_the_document_is_twice_the_work() {
    for body in [
        "<x:number/>",
        "<x:number level='any'/>",
        "<x:number level='multiple' count='a|b'/>",
        "<x:number level='any' count='a|b' from='r'/>",
        "<x:value-of select='position()'/>",
        "<x:value-of select='count(key(\"k\", .)[1])'/>",
        "<x:value-of select='string-length(.)'/>",
    ] {
        let (once, twice) = (units(body, 1000), units(body, 2000));
        assert!(twice < once * 5 / 2, "{body}: {once}, {twice}");
    }
}

/// The same for whole stylesheets of version 2.0.
fn units_of(sheet: &str, text: String) -> u64 {
    let sheet = format!(
        "<x:stylesheet version='2.0' xmlns:x='http://www.w3.org/1999/XSL/Transform' xmlns:xs='http://www.w3.org/2001/XMLSchema'>{sheet}</x:stylesheet>"
    );
    let sheet = Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()).unwrap();
    let input = Document::parse(text, &ParseOptions::default()).unwrap();
    let run = || {
        let mut out = Vec::new();
        sheet.transform_to(&input, Document::ROOT, &[], &RunOptions::default(), &mut out)
    };
    let (result, used) = meter::within(std::time::Duration::from_secs(600), None, run);
    result.unwrap();
    used.units
}

#[test]
fn patterns_and_paths_in_proportion() {
    let plain = |count: usize| format!("<r>{}</r>", "<a>1</a>".repeat(count));
    let different =
        |count: usize| format!("<r>{}</r>", (0..count).map(|n| format!("<a>{n}</a>")).collect::<String>());
    for sheet in [
        "<x:template match='a[last()]'>l</x:template>",
        "<x:template match='a[position() = last()]'>l</x:template>",
        "<x:template match='a[. = 1][2]'>l</x:template>",
        "<x:template match='a[position() &gt; 1][position() &lt; 3]'>l</x:template>",
        "<x:template match='@*|node()'><x:copy><x:apply-templates select='@*|node()'/></x:copy></x:template>",
        "<x:template match='/'><x:value-of select='count(//a/following-sibling::a)'/></x:template>",
        "<x:template match='/'><x:value-of select='count(//a/preceding-sibling::a)'/></x:template>",
        "<x:template match='/'><x:value-of select='count(//a/following::a), count(//a/preceding::a)'/></x:template>",
        "<x:template match='/'><x:value-of select='count(//*//a), count(//node()/descendant-or-self::a)'/></x:template>",
        "<x:template match='/'><x:value-of select='count(//a[. = //r/a])'/></x:template>",
        "<x:template match='/'><x:variable name='v' select='//a'/><x:for-each select='1 to count($v)'><x:variable name='i' select='.'/><x:value-of select='$v[position() = $i], $v[$i], $v[position() eq $i]'/></x:for-each></x:template>",
        "<x:template match='/'><x:value-of select='count(//a[position() = 1 to 100000])'/></x:template>",
        "<x:template match='/'><x:for-each-group select='//a' group-by='xs:date(\"2000-01-01\") + xs:dayTimeDuration(concat(\"P\", number(.) mod 1000, \"D\"))'>1</x:for-each-group></x:template>",
        "<x:template match='/'><x:for-each-group select='//a' group-by='xs:dayTimeDuration(concat(\"PT\", ., \"S\"))'>1</x:for-each-group></x:template>",
        "<x:template match='/'><x:for-each-group select='//a' group-by='QName(\"u\", concat(\"n\", .))'>1</x:for-each-group></x:template>",
        "<x:template match='/'><x:for-each select='//a'><x:sort select='number(.)'/><x:value-of select='.'/></x:for-each></x:template>",
    ] {
        for text in [&plain as &dyn Fn(usize) -> String, &different] {
            let (once, twice) = (units_of(sheet, text(1000)), units_of(sheet, text(2000)));
            assert!(twice < once * 5 / 2, "{sheet}: {once}, {twice}");
        }
    }
}
