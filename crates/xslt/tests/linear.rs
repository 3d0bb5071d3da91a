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
        "<x:number count='a[. != \"\"]'/>",
        "<x:number level='any' count='a[. != \"\"]' from='r'/>",
        "<x:number level='any' from='b[@c = 1]'/>",
        "<x:for-each select='.|c'><x:number level='multiple' count='*'/></x:for-each>",
        "<x:number level='multiple' count='a[. = 1][position() &gt; 3]|r[a]'/>",
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
        "<x:template match='r/a[. = 1][3]'>l</x:template><x:template match='*[self::a][position() = 5]'>m</x:template>",
        "<x:template match='a[3]'>l</x:template><x:template match='*[5]'>m</x:template><x:template match='node()[position() &gt; 9000]'>m</x:template>",
        "<x:template match='r/a[position() = last() - 1]'>l</x:template><x:template match='*[position() = last() - 3]'>m</x:template>",
        "<x:template match='r[count(a) &gt; 1]/a'>l</x:template>",
        "<x:template match='/'><x:for-each select='r/a'><x:number count='a[. != \"\"]'/></x:for-each></x:template>",
        "<x:template match='/'><x:for-each select='r/a'><x:number level='any' count='*[. ne \"\"]' from='a[@c = 1]'/></x:for-each></x:template>",
        "<x:template match='/'><x:for-each select='r/a'><x:number level='any' count='z'/></x:for-each></x:template>",
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
            // Few steps are counted together, so that little work may count as none.
            assert!(twice < once * 5 / 2 + 1000, "{sheet}: {once}, {twice}");
        }
    }
}

/// Elements `a` with numbers, of which every tenth holds a `b` with an attribute, in groups of a hundred.
fn mixed(count: usize) -> String {
    let mut text = String::from("<r xml:lang='en'>");
    for n in 0..count {
        if n % 100 == 0 {
            text.push_str(if n == 0 { "<g>" } else { "</g><g>" });
        }
        let day = 1 + n % 28;
        let inside = if n % 10 == 0 { "<b x='y'/><!--c--><?p i?>" } else { "" };
        text.push_str(&format!("<a id='i{n}' d='2026-11-{day:02}'>{n}{inside}</a>"));
    }
    text.push_str("</g></r>");
    text
}

/// Fails with all that take more than their share for twice the document.
fn in_proportion(sheets: &[&str], version: &str) {
    let names = "xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:map='http://www.w3.org/2005/xpath-functions/map' \
                 xmlns:array='http://www.w3.org/2005/xpath-functions/array' xmlns:f='urn:f'";
    let mut wrong = String::new();
    for body in sheets {
        let body = match body.starts_with("<x:template match")
            || body.starts_with("<x:key")
            || body.starts_with("<x:function")
        {
            true => (*body).to_owned(),
            false => format!("<x:template match='/'><o>{body}</o></x:template>"),
        };
        let sheet = format!(
            "<x:stylesheet version='{version}' xmlns:x='http://www.w3.org/1999/XSL/Transform' {names}>{body}</x:stylesheet>"
        );
        let sheet = match Stylesheet::compile(sheet.as_bytes(), &CompileOptions::default()) {
            Ok(sheet) => sheet,
            Err(errors) => panic!("{body}: {}", errors[0]),
        };
        let units = |count: usize| {
            let input = Document::parse(mixed(count), &ParseOptions::default()).unwrap();
            let run = || {
                let mut out = Vec::new();
                sheet.transform_to(&input, Document::ROOT, &[], &RunOptions::default(), &mut out)
            };
            let (result, used) = meter::within(std::time::Duration::from_secs(600), None, run);
            result.unwrap_or_else(|error| panic!("{body}: {error}"));
            used.units
        };
        let (once, twice) = (units(400), units(800));
        if twice >= once * 5 / 2 + 50 {
            wrong.push_str(&format!("{body}: {once}, {twice}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn instructions_in_proportion() {
    in_proportion(
        &[
            "<x:for-each select='//a'><x:copy-of select='.'/></x:for-each>",
            "<x:for-each select='//a'><x:copy><x:copy-of select='@*'/></x:copy></x:for-each>",
            "<x:for-each select='//a'><x:element name='e{position()}'><x:attribute name='k' select='.'/></x:element></x:for-each>",
            "<x:for-each select='//a'><e><x:namespace name='p' select='\"urn:p\"'/></e></x:for-each>",
            "<x:for-each select='//a'><x:comment select='.'/><x:processing-instruction name='p' select='.'/></x:for-each>",
            "<x:for-each select='//a'><x:choose><x:when test='b'>1</x:when><x:otherwise>2</x:otherwise></x:choose></x:for-each>",
            "<x:for-each select='//a'><x:variable name='v'><c><x:value-of select='.'/></c></x:variable><x:copy-of select='$v'/></x:for-each>",
            "<x:for-each select='//a'><x:variable name='v' as='element()*'><x:sequence select='.'/></x:variable><x:value-of select='$v/@id'/></x:for-each>",
            "<x:for-each select='//a'><x:sort select='@id'/><x:value-of select='.'/></x:for-each>",
            "<x:for-each select='//a'><x:sort select='number(.)' order='descending'/><x:value-of select='.'/></x:for-each>",
            "<x:for-each select='//a'><x:sort select='@d'/><x:sort select='@id' lang='en'/><x:value-of select='.'/></x:for-each>",
            "<x:for-each select='//a'><x:sort select='xs:date(@d)'/><x:value-of select='.'/></x:for-each>",
            "<x:perform-sort select='//a'><x:sort select='@id' case-order='upper-first'/></x:perform-sort>",
            "<x:for-each-group select='//a' group-by='@d'><x:value-of select='count(current-group())'/></x:for-each-group>",
            "<x:for-each-group select='//a' group-by='@id'><x:value-of select='current-grouping-key()'/></x:for-each-group>",
            "<x:for-each-group select='//a' group-adjacent='@d'><x:value-of select='count(current-group())'/></x:for-each-group>",
            "<x:for-each-group select='//a' group-starting-with='a[b]'><x:value-of select='count(current-group())'/></x:for-each-group>",
            "<x:for-each-group select='//a' group-ending-with='a[b]'><x:value-of select='count(current-group())'/></x:for-each-group>",
            "<x:analyze-string select='string-join(//a, \" \")' regex='[0-9]+'><x:matching-substring><x:value-of select='.'/></x:matching-substring></x:analyze-string>",
            "<x:for-each select='//a'><x:number/><x:number level='any'/><x:number level='multiple' count='a|g'/></x:for-each>",
            "<x:for-each select='//a'><x:value-of select='.' separator=','/></x:for-each>",
            "<x:template match='/'><x:result-document indent='yes'><x:copy-of select='/'/></x:result-document></x:template>",
            "<x:key name='k' match='a' use='@d'/><x:template match='/'><o><x:for-each select='distinct-values(//a/@d)'><x:variable name='d' select='.'/></x:for-each><x:for-each select='//a[b]'><x:value-of select='count(key(\"k\", @id))'/></x:for-each></o></x:template>",
            "<x:template match='@*|node()'><x:copy><x:apply-templates select='@*|node()'/></x:copy></x:template>",
            "<x:template match='a'><e><x:next-match/></e></x:template><x:template match='*' priority='-2'><x:apply-templates/></x:template>",
            "<x:template match='/'><o><x:call-template name='t'><x:with-param name='n' select='count(//a)'/></x:call-template></o></x:template><x:template name='t'><x:param name='n'/><x:if test='$n &gt; 0'><x:value-of select='$n'/><x:call-template name='t'><x:with-param name='n' select='$n - 1'/></x:call-template></x:if></x:template>",
            "<x:template match='/'><o><x:apply-templates select='//a'><x:with-param name='p' select='1' tunnel='yes'/></x:apply-templates></o></x:template><x:template match='a'><x:param name='p' tunnel='yes'/><x:value-of select='$p'/></x:template>",
            "<x:function name='f:s'><x:param name='n'/><x:sequence select='if ($n = 0) then 0 else f:s($n - 1)'/></x:function><x:template match='/'><o><x:value-of select='f:s(count(//a))'/></o></x:template>",
        ],
        "2.0",
    );
}

/// Conditions that compare with something outside, evaluated in a loop.
#[test]
fn joins_in_proportion() {
    let loops = [
        "<x:for-each select='//a'><x:value-of select='//a[@id = current()/@id]/@d'/></x:for-each>",
        "<x:for-each select='//a'><x:value-of select='/r/g/a[@id = current()/@id]/@d'/></x:for-each>",
        "<x:for-each select='//a'><x:value-of select='//g/a[concat(@id, \"-\", @d) = concat(current()/@id, \"-\", current()/@d)]/@d'/></x:for-each>",
        "<x:variable name='all' select='//a'/><x:for-each select='//a'><x:variable name='v' select='@id'/><x:value-of select='//a[@id = $v]/@d'/><x:value-of select='$all[@id = $v]/@d'/></x:for-each>",
        "<x:for-each select='//a'><x:variable name='v' select='string(@id)'/><x:if test='//a[@id = $v and @d]'>1</x:if></x:for-each>",
        "<x:for-each select='//a'><x:variable name='n' select='position()'/><x:value-of select='count(//a[. = $n - 1])'/></x:for-each>",
        "<x:for-each select='//a'><x:value-of select='//a[generate-id() = generate-id(current())]/@d'/></x:for-each>",
        "<x:for-each select='//a'><x:if test='generate-id() = generate-id((//a[@id = current()/@id])[1])'>1</x:if></x:for-each>",
        "<x:for-each select='//a[not(@id = preceding::a/@id)]'><x:value-of select='@id'/></x:for-each>",
        "<x:for-each select='//a[not(@d = preceding::a/@d)]'><x:value-of select='@d'/></x:for-each>",
        "<x:for-each select='//a'><x:value-of select='count(preceding::a[@id = current()/@id])'/></x:for-each>",
        "<x:for-each select='//a'><x:if test='@id = following::a/@id'>1</x:if></x:for-each>",
        "<x:key name='k' match='a' use='substring(@d, 1, 9)'/><x:template match='/'><o><x:for-each select='//a'><x:value-of select='key(\"k\", substring(@d, 1, 9))[@id = current()/@id]/@d'/></x:for-each></o></x:template>",
        // (Nearly all nodes have the key: the first is enough.)
        "<x:for-each select='//a'><x:variable name='n' select='substring(\"zza\", 1 + 2 * number(position() > 3), 1)'/><x:if test='//a[name() = $n]'>1</x:if></x:for-each>",
        "<x:template match='/'><o><x:apply-templates select='//a'/></o></x:template><x:template match='a'><x:apply-templates select='//b[../@id = current()/@id]/@x'/></x:template>",
    ];
    in_proportion(&loops, "1.0");
    in_proportion(&loops, "2.0");
    // (Of 1.0, where only the first counts.)
    in_proportion(
        &[
            "<x:for-each select='//a'><x:variable name='n' select='substring(\"zza\", 1 + 2 * number(position() > 3), 1)'/><x:value-of select='//a[name() = $n]/@d'/></x:for-each>",
            "<x:for-each select='//a'><x:variable name='n' select='substring(\"zza\", 1 + 2 * number(position() > 3), 1)'/><x:value-of select='(//a[name() = $n])[1]/@d'/></x:for-each>",
            "<x:for-each select='//a'><x:variable name='n' select='substring(\"zza\", 1 + 2 * number(position() > 3), 1)'/><x:value-of select='/r/g/*[name() = $n][1]/@id'/></x:for-each>",
        ],
        "1.0",
    );
    in_proportion(
        &[
            "<x:value-of select='for $x in //a return //a[@id = $x/@id]/@d'/>",
            "<x:value-of select='for $x in //a return /r/g/a[@id eq $x/@id]/@d'/>",
            "<x:value-of select='for $x in //a/@id/string() return //a[lower-case(@id) = $x]/@d'/>",
            "<x:value-of select='count(for $n in 1 to count(//a) return //a[. = $n - 1])'/>",
            "<x:value-of select='let $all := //a return for $x in $all return $all[@id = $x/@id][1]/@d'/>",
            "<x:value-of select='//a/(let $x := . return //a[@id = $x/@id]/@d)'/>",
            "<x:value-of select='//a ! (let $x := . return //a[@id = ($x/@id, \"-\")]/@d)'/>",
        ],
        "3.0",
    );
}

#[test]
fn instructions_of_3_0_in_proportion() {
    in_proportion(
        &[
            "<x:iterate select='//a'><x:param name='s' select='0'/><x:next-iteration><x:with-param name='s' select='$s + 1'/></x:next-iteration></x:iterate>",
            "<x:for-each select='//a'><x:try><x:value-of select='xs:integer(.)'/><x:catch>?</x:catch></x:try></x:for-each>",
            "<x:variable name='m' as='map(*)'><x:map><x:for-each select='//a'><x:map-entry key='string(@id)' select='string(.)'/></x:for-each></x:map></x:variable><x:for-each select='//a'><x:value-of select='$m(@id)'/></x:for-each>",
            "<x:merge><x:merge-source select='//a'><x:merge-key select='number(.)'/></x:merge-source><x:merge-source select='//a[b]'><x:merge-key select='number(.)'/></x:merge-source><x:merge-action><x:value-of select='count(current-merge-group())'/></x:merge-action></x:merge>",
            "<x:for-each select='//a'><x:where-populated><e><x:value-of select='b'/></e></x:where-populated></x:for-each>",
            "<x:for-each select='//a'><e><x:value-of select='b'/><x:on-empty>-</x:on-empty></e></x:for-each>",
            "<x:for-each select='//a'><x:assert test='@id'/></x:for-each>",
            "<x:for-each-group select='//a' group-by='@d, b' composite='yes'><x:value-of select='count(current-group())'/></x:for-each-group>",
            "<x:fork><x:sequence select='count(//a)'/><x:sequence select='count(//a/@d)'/></x:fork><x:fork><x:for-each-group select='//a' group-by='@d'>1</x:for-each-group></x:fork>",
            "<x:key name='k' match='a' use='@d, @id' composite='yes'/><x:template match='/'><o><x:for-each select='//a'><x:value-of select='count(key(\"k\", (@d, @id)))'/></x:for-each></o></x:template>",
            "<x:function name='f:s'><x:param name='l'/><x:sequence select='if (empty($l)) then 0 else f:s(subsequence($l, 2))'/></x:function><x:template match='/'><o><x:value-of select='f:s(//a), f:s(//a/@id/string())'/></o></x:template>",
            "<x:function name='f:s'><x:param name='l'/><x:sequence select='if (count($l) = 0) then 0 else if (count($l) mod 2 = 0) then f:s(remove($l, 1)) else f:s(remove($l, count($l)))'/></x:function><x:template match='/'><o><x:value-of select='f:s(//a), f:s(//a/@id/string())'/></o></x:template>",
            "<x:function name='f:s'><x:param name='l'/><x:sequence select='if (exists($l)) then f:s($l[position() gt 1]) else 0'/></x:function><x:template match='/'><o><x:value-of select='f:s(//a), f:s(//a/@id/string())'/></o></x:template>",
            "<x:function name='f:s'><x:param name='l'/><x:sequence select='if (exists($l)) then f:s($l[position() &lt; last()]) else 0'/></x:function><x:template match='/'><o><x:value-of select='f:s(subsequence(//a, 1, 20))'/></o></x:template>",
            "<x:function name='f:s'><x:param name='l'/><x:sequence select='if (exists($l)) then (head($l), f:s(tail($l))) else ()'/></x:function><x:template match='/'><o><x:value-of select='count(f:s(subsequence(//a, 1, 20)))'/></o></x:template>",
            "<x:iterate select='//a'><x:param name='s' select='()'/><x:on-completion select='count($s)'/><x:next-iteration><x:with-param name='s' select='$s, .'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='s' as='xs:string*' select='()'/><x:on-completion select='$s'/><x:next-iteration><x:with-param name='s' select='string(.), $s'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='s' as='element()*' select='()'/><x:on-completion select='$s/@id'/><x:next-iteration><x:with-param name='s' select='if (b) then ($s, ., b) else ($s, .)'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='s' as='xs:integer*' select='0'/><x:on-completion select='$s'/><x:next-iteration><x:with-param name='s' select='$s, $s[last()] + 1'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='q' select='1 to 60'/><x:on-completion select='$q'/><x:next-iteration><x:with-param name='q' select='tail($q), string(.)'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='s' as='element()*' select='()'/><x:on-completion select='count($s)'/><x:next-iteration><x:with-param name='s' as='element()*'><x:sequence select='$s'/><x:sequence select='.'/></x:with-param></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='s' as='item()*' select='()'/><x:on-completion select='count($s)'/><x:next-iteration><x:with-param name='s' as='item()*'><x:if test='b'><e><x:value-of select='.'/></e></x:if><x:sequence select='$s'/><x:choose><x:when test='b'><f/></x:when><x:otherwise><x:sequence select='1, .'/></x:otherwise></x:choose></x:with-param></x:next-iteration></x:iterate>",
            "<x:function name='f:s'><x:param name='l'/><x:param name='s' as='item()*'/><x:choose><x:when test='empty($l)'><x:sequence select='$s'/></x:when><x:otherwise><x:variable name='more' as='item()*'><x:sequence select='$s'/><x:sequence select='head($l)'/></x:variable><x:sequence select='f:s(tail($l), $more)'/></x:otherwise></x:choose></x:function><x:template match='/'><o><x:value-of select='count(f:s(//a, ()))'/></o></x:template>",
            "<x:iterate select='//a'><x:param name='m' as='map(xs:string, element()*)' select='map{}'/><x:on-completion select='map:size($m)'/><x:next-iteration><x:with-param name='m' select='map:put($m, string(@id), (., b))'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='m' as='map(xs:string, map(xs:integer, item()))' select='map{\"x\": map{}}'/><x:on-completion select='map:size($m?x)'/><x:next-iteration><x:with-param name='m' select='map:put($m, \"x\", map:put($m?x, position(), .))'/></x:next-iteration></x:iterate>",
            "<x:iterate select='//a'><x:param name='l' as='array(xs:string)' select='[]'/><x:on-completion select='array:size($l)'/><x:next-iteration><x:with-param name='l' select='array:append($l, string(.))'/></x:next-iteration></x:iterate>",
            "<x:function name='f:at' as='item()*'><x:param name='m' as='map(xs:string, item()*)'/><x:param name='k'/><x:sequence select='$m($k)'/></x:function><x:template match='/'><o><x:variable name='m' select='map:merge(//a ! map { string(@id): (., b) })'/><x:value-of select='//a ! f:at($m, @id)'/></o></x:template>",
            "<x:iterate select='//a'><x:param name='m' select='map{}'/><x:on-completion select='count($m?x)'/><x:next-iteration><x:with-param name='m' select='map:put($m, \"x\", ($m?x, .))'/></x:next-iteration></x:iterate>",
            "<x:for-each select='//a'><x:value-of select='path(), path(b)'/></x:for-each>",
            "<x:function name='f:s'><x:param name='l'/><x:param name='s' as='xs:string*'/><x:sequence select='if (empty($l)) then $s else f:s(tail($l), ($s, head($l)))'/></x:function><x:template match='/'><o><x:value-of select='f:s(//a/@id/string(), ())'/></o></x:template>",
            "<x:template match='/' expand-text='yes'><o><x:for-each select='//a'>{.} of {@id}</x:for-each></o></x:template>",
        ],
        "3.0",
    );
}

/// Values of an accumulator share what they have in common, in time and in memory.
#[test]
fn accumulators_that_collect_in_proportion() {
    let sheet = |ty: &str, select: &str| {
        format!(
            "<x:accumulator name='v' {ty} initial-value='()'><x:accumulator-rule match='a' select='{select}'/></x:accumulator>\
             <x:mode use-accumulators='v'/><x:template match='/'><o><x:value-of select='count(accumulator-after(\"v\"))'/></o></x:template>"
        )
    };
    for (ty, select) in [
        ("", "$value, string(@id)"),
        ("as=\"xs:string*\"", "$value, string(@id)"),
        ("as=\"node()*\"", "(., $value)"),
        ("", "if (b) then ($value, .) else $value"),
    ] {
        let sheet = sheet(ty, select);
        let whole = format!(
            "<x:stylesheet version='3.0' xmlns:x='http://www.w3.org/1999/XSL/Transform' xmlns:xs='http://www.w3.org/2001/XMLSchema'>{sheet}</x:stylesheet>"
        );
        let whole = Stylesheet::compile(whole.as_bytes(), &CompileOptions::default()).unwrap();
        let run = |count: usize| {
            let input = Document::parse(mixed(count), &ParseOptions::default()).unwrap();
            let run = || whole.transform(&input, Document::ROOT, &[], &RunOptions::default()).map(|_| ());
            let (result, used) = meter::within(std::time::Duration::from_secs(600), None, run);
            result.unwrap_or_else(|error| panic!("{select}: {error}"));
            used.units
        };
        let (once, twice) = (run(10_000), run(20_000));
        assert!(twice < once * 5 / 2, "{ty} {select}: {once}, {twice}");
    }
}

#[test]
fn axes_and_patterns_in_proportion() {
    in_proportion(
        &[
            "<x:value-of select='count(//a/child::node()), count(//a/attribute::*), count(//a/self::a), count(//b/parent::a)'/>",
            "<x:value-of select='count(//b/ancestor::*), count(//b/ancestor-or-self::node()), count(/descendant::a)'/>",
            "<x:value-of select='count(//b/following-sibling::node()), count(//b/preceding-sibling::node())'/>",
            "<x:value-of select='count(//b/following::a), count(//b/preceding::a), count(//g/following-sibling::g)'/>",
            "<x:value-of select='count(//a/namespace::*)'/>",
            "<x:value-of select='count(//a[1]), count(//a[last()]), count(//a[position() &gt; 5]), count(//a[b]), count((//a)[7])'/>",
            "<x:value-of select='count(//a | //b), count(//a intersect //g/a), count(//a except //a[b])'/>",
            "<x:value-of select='count(//a[@id = \"i7\"]), count(//a[. = (1 to 50)]), count(//a[@d = //a[b]/@d])'/>",
            "<x:for-each select='//a'><x:value-of select='../@none, /r/@xml:lang, lang(\"en\")'/></x:for-each>",
            "<x:template match='a[1]'>1</x:template><x:template match='a[last()]'>l</x:template>",
            "<x:template match='g/a[b]'>1</x:template><x:template match='//a'>2</x:template><x:template match='text()'/>",
            "<x:template match='a[@d = \"2026-11-07\"]'>1</x:template><x:template match='@*'>2</x:template>",
            "<x:template match='a[position() mod 2 = 1]'>1</x:template><x:template match='*[self::a]'>2</x:template>",
            "<x:template match='a[not(preceding-sibling::a)]'>1</x:template><x:template match='comment() | processing-instruction()'>c</x:template>",
            "<x:key name='k' match='a' use='@d'/><x:template match='key(\"k\", \"2026-11-07\")'>1</x:template>",
        ],
        "2.0",
    );
}

#[test]
fn functions_in_proportion() {
    in_proportion(
        &[
            "<x:value-of select='string-length(string-join(//a, \",\")), count(tokenize(string-join(//a, \",\"), \",\"))'/>",
            "<x:value-of select='string-length(replace(string-join(//a, \",\"), \"1\", \"one\")), matches(string-join(//a, \",\"), \"x\")'/>",
            "<x:value-of select='count(distinct-values(//a/@d)), count(distinct-values(//a/@id)), count(index-of(//a/@d, \"2026-11-07\"))'/>",
            "<x:value-of select='sum(//a/number()), avg(//a/number()), min(//a/number()), max(//a/@id/string())'/>",
            "<x:value-of select='count(reverse(//a)), count(subsequence(//a, 5)), count(remove(//a, 5)), count(insert-before(//a, 5, 1))'/>",
            "<x:value-of select='deep-equal(/, /), exists(//a), empty(//z), every $a in //a satisfies $a/@id, some $a in //a satisfies $a/z'/>",
            "<x:value-of select='count(string-to-codepoints(string-join(//a, \"\"))), string-length(codepoints-to-string(string-to-codepoints(string-join(//a, \"\"))))'/>",
            "<x:value-of select='string-length(translate(string-join(//a, \"\"), \"123\", \"abc\")), string-length(upper-case(string-join(//a, \"\"))), string-length(normalize-space(string-join(//a, \" \")))'/>",
            "<x:for-each select='//a'><x:value-of select='format-number(number(.), \"#,##0.00\"), format-date(xs:date(@d), \"[D1o] [MNn] [Y]\"), xs:date(@d) + xs:dayTimeDuration(\"P1D\")'/></x:for-each>",
            "<x:for-each select='//a'><x:value-of select='concat(., @id), substring(@d, 6), contains(@id, \"1\"), starts-with(@id, \"i\"), number(.) * 2 + 1, round(number(.) div 3)'/></x:for-each>",
            "<x:for-each select='//a'><x:value-of select='generate-id(), name(), local-name(), root()/*/name(), base-uri()'/></x:for-each>",
            "<x:value-of select='count(for $a in //a return $a/@id), count(1 to count(//a)), string-length(string(/))'/>",
            "<x:value-of select='encode-for-uri(string-join(//a, \"/\")), string-length(escape-html-uri(string-join(//a, \"/\")))'/>",
        ],
        "2.0",
    );
    in_proportion(
        &[
            "<x:value-of select='count(sort(//a/@id/string())), fold-left(//a, 0, function($s, $a) { $s + 1 }), count(filter(//a, function($a) { exists($a/b) }))'/>",
            "<x:value-of select='map:size(map:merge(//a ! map { string(@id): string(.) })), map:size(fold-left(//a, map {}, function($m, $a) { map:put($m, string($a/@id), 1) }))'/>",
            "<x:variable name='v'><r><x:copy-of select='//a'/></r></x:variable><x:value-of select='count($v/r/a ! path()), count(for $a in $v/r/a/b return path($a))'/>",
            "<x:value-of select='map:size(map:merge(//a ! map { 1: . }, map { \"duplicates\": \"combine\" })), map:merge((map { 0: 0, 1: 1 }, //a ! map { string(@d): . }), map { \"duplicates\": \"combine\" })(1)'/>",
            "<x:value-of select='fold-left(1 to count(//a), //a, function($l, $n) { tail($l) }), fold-left(1 to count(//a), //a/string(), function($l, $n) { tail($l) })'/>",
            "<x:value-of select='array:size(array { //a }), array:size(fold-left(//a, [], function($r, $a) { array:append($r, 1) }))'/>",
            "<x:value-of select='count(fold-left(//a, (), function($l, $a) { $l, $a })), fold-right(//a, (), function($a, $l) { $a, $l })/@id, count(fold-left(//a, (), function($l, $a) { ($l, ($a, 1)), string($a) }))'/>",
            "<x:value-of select='string-length(serialize(/)), count(parse-xml(serialize(/))//a)'/>",
            "<x:variable name='j' select='\"[\" || string-join(//a, \",\") || \"]\"'/><x:value-of select='array:size(parse-json($j)), count(json-to-xml($j)//*), string-length(xml-to-json(json-to-xml($j)))'/>",
            "<x:value-of select='count(//a ! (. || \"x\")), count(//a => reverse()), count(innermost(//node())), count(outermost(//node()))'/>",
            "<x:value-of select='count(analyze-string(string-join(//a, \" \"), \"[0-9]+\")/*), count(//a ! path()), string-length(format-integer(count(//a), \"w\"))'/>",
        ],
        "3.0",
    );
}

/// What is the same for each node, in predicates, steps and comparisons, is worked out once, and compared with by a look.
#[test]
fn invariants_in_proportion() {
    in_proportion(
        &[
            "<x:value-of select='count(//a[@id &lt; //a/@id])'/>",
            "<x:value-of select='count(//a[//a/@id &gt;= @id])'/>",
            "<x:value-of select='count(//a[@id != //a/@id])'/>",
            "<x:value-of select='count(//a[@id = //a[b]/@id])'/>",
            "<x:value-of select='count(//a[. = //a])'/>",
            "<x:value-of select='count(//a[number(.) &gt; //a/text()])'/>",
            "<x:value-of select='count(//a[text() &gt;= //a/number(text()[1])])'/>",
            "<x:value-of select='count(//a[@id = (//a)[last()]/@id])'/>",
            "<x:value-of select='count(//a[(//a)[last()] is .])'/>",
            "<x:value-of select='count(//a[position() &lt; count(//a)])'/>",
            "<x:value-of select='count(//a[@id = distinct-values(//a/@id)])'/>",
            "<x:value-of select='count(//a[not(@id = subsequence(//a, 2)/@id)])'/>",
            "<x:value-of select='count(//a[number(text()[1]) ge max(//a/number(text()[1]))])'/>",
            "<x:value-of select='count(//a[string-length(string-join(//a/@id, \"\")) gt 5])'/>",
            "<x:value-of select='count(//a[exists(//a[@id = \"none\"])])'/>",
            "<x:value-of select='count(//a/(if (count(//a) gt 1) then @id else ()))'/>",
            "<x:value-of select='count((//a)[. = //a/@id])'/>",
            "<x:value-of select='//a = //a/@id, //a/@d = //a/@id'/>",
            "<x:for-each select='//a[@d = //a[last()]/@d][position() = last()]'><x:value-of select='@id'/></x:for-each>",
            "<x:value-of select='count(distinct-values(//a/(xs:integer(100000000000000000000) + xs:integer(text()[1]))))'/>",
            "<x:value-of select='count(distinct-values((1e0, //a/(xs:decimal(0.1) * xs:integer(text()[1])))))'/>",
            "<x:for-each-group select='//a' group-by='xs:integer(100000000000000000000) + xs:integer(text()[1])'>1</x:for-each-group>",
            "<x:for-each-group select='.' group-by='//a/@id'>1</x:for-each-group>",
            "<x:variable name='l' select='//a/@id'/><x:for-each select='//a'><x:if test='not(@d = $l) or $l != string(@id)'>x</x:if></x:for-each>",
            "<x:variable name='l' select='//a/number(text()[1])'/><x:value-of select='count(//a[number(text()[1]) &lt;= $l]), count(//a[$l = text()])'/>",
            "<x:variable name='l' select='\"1 2 3\"'/><x:value-of select='count(//a[@id = tokenize($l, \" \")])'/>",
        ],
        "2.0",
    );
    in_proportion(
        &[
            "<x:value-of select='count(//a[@id &lt; //a/@id])'/>",
            "<x:value-of select='count(//a[position() &lt; count(//a)])'/>",
            "<x:value-of select='count(//a[number(.) &gt; sum(//a/@id)])'/>",
            "<x:value-of select='count(//a[string-length(concat(//a[last()], //g)) &gt; 5])'/>",
            "<x:value-of select='count(//a[//a[b]/@id = @id])'/>",
            "<x:value-of select='count(//a[//a/@id = \"none\"])'/>",
            "<x:variable name='l' select='//a/@id'/><x:value-of select='count(//a[@id = $l]) + count(//a[$l != @id]) + count(//a[not(@id &gt; $l)])'/>",
            "<x:variable name='d' select='/'/><x:value-of select='count(//a[@id = $d//a/@id])'/>",
            "<x:variable name='l' select='//a/@id'/><x:for-each select='//a'><x:if test='not(@d = $l) or $l &lt; @id'>x</x:if></x:for-each>",
        ],
        "1.0",
    );
    in_proportion(
        &[
            "<x:value-of select='count(//a ! (count(//a) + 1))'/>",
            "<x:merge><x:merge-source select='//a'><x:merge-key select='1'/></x:merge-source><x:merge-action><x:for-each select='current-merge-group()'><x:value-of select='count(current-merge-group()), exists(current-merge-group()[5])'/></x:for-each></x:merge-action></x:merge>",
            "<x:value-of select='count(fold-left(1 to 20 * count(//a), (), function($all, $n) { insert-before($all, 1, $n) }))'/>",
            "<x:value-of select='count(fold-left(1 to 20 * count(//a), (), function($all, $n) { insert-before($all, $n, $n) }))'/>",
            "<x:value-of select='count(fold-left(1 to 20 * count(//a), 1 to 20 * count(//a), function($all, $n) { remove($all, count($all)) }))'/>",
            "<x:key name='k' match='a' use='xs:integer(text()[1])'/><x:template match='/'><o><x:for-each select='//a'><x:value-of select='count(key(\"k\", xs:float(text()[1]))), count(key(\"k\", xs:double(text()[1])))'/></x:for-each></o></x:template>",
        ],
        "3.0",
    );
}
