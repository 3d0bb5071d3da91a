use super::*;
use serde_json::json;
use std::borrow::Cow;

fn fill_with(template: &str, json: serde_json::Value, xml: &str) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| format!("load: {error}"))?;
    let document = xml::Document::parse(xml.to_owned(), &xml::ParseOptions::default()).unwrap();
    let headers = [("User-Agent".to_owned(), "me".to_owned())];
    let model = [
        ("payload", Model::Json(&json)),
        ("doc", Model::Xml(&document)),
        ("trp", Model::Texts(&headers, true)),
        ("args", Model::Models(vec![("arg1".into(), Model::Text(Cow::Borrowed("lit")))])),
    ];
    template.fill(&model, 1 << 20).map_err(|error| error.to_string())
}

fn fill(template: &str) -> Result<String, String> {
    let payload = json!({
        "a": "x", "n": 1234567.25, "b": true, "z": null, "l": [3, 1, 2], "w": ["b", "C", "a"],
        "o": {"k": "v", "m": {"d": 1}}, "p": [{"n": "one", "q": 1}, {"n": "two", "q": 2.5}], "e": [], "g": [1, null, 3], "s": "a,b;c",
        "quote": "a\"b\\c\n<x>&'"
    });
    fill_with(
        template,
        payload,
        "<o id='7'><item><q>1</q></item><item t='x'><q>2</q></item><m>a<b/>c</m><n xmlns='u'>N</n></o>",
    )
}

fn check(table: &[(&str, &str)]) {
    let differing: Vec<String> = table
        .iter()
        .map(|(template, expected)| {
            (template, expected, fill(template).unwrap_or_else(|error| format!("!{error}")))
        })
        .filter(|(_, expected, found)| found != *expected)
        .map(|(template, expected, found)| format!("{template:?}\n   found {found:?}\n  wanted {expected:?}"))
        .collect();
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

/// What is stripped of lines that consist of tags.
#[test]
fn white_space_around_tags() {
    check(&[
        ("${1}\n  <#if true>\nb\n  </#if>\nc", "1\nb\nc"),
        // The first text stays as it is, and with it the rest of its line.
        ("  <#if true>\nb\n</#if>\n", "  \nb\n"),
        ("\n  <#if true>\nb\n</#if>\n", "\n  b\n"),
        ("\n \n", "\n \n"),
        // Between tags that write nothing, and at the ends.
        ("<#assign q = 1> \n <#-- c --> <#setting number_format='0'>x", "x"),
        ("  \n <#assign q = 1>\n\n", ""),
        ("<#assign q = 1> <#if true>\nx</#if>", " \nx"),
        ("${payload.a} \n<#assign q = 1>\ny", "x \ny"),
        // The content of macros and of what is captured does not count on the line.
        ("<#macro m>M</#macro>\nx<@m/>", "xM"),
        ("<#macro m>M</#macro><@m/>\ny", "My"),
        ("<#assign z>Z</#assign>\nx${z}", "xZ"),
        ("<#if true>Z</#if>\nx", "Z\nx"),
        ("<#switch 1> \n <#case 1>\nx</#switch>", "x"),
        ("<#list [1, 2] as i>\n  ${i}<#sep>,\n</#list>", "  1,\n  2"),
        ("<#noparse><#if>\n</#noparse>x", "<#if>\nx"),
        // What marks say of their line.
        ("a\n  b <#t>\nc", "a\nb c"),
        ("a\n  b <#lt>\nc", "a\nb \nc"),
        ("a\n  b <#rt>\nc", "a\n  b c"),
        ("a\n  <#if true><#nt>\nc</#if>", "a\n  \nc"),
        ("a\n  <#t>b<#if true>${payload.a}<#t></#if>\n\nc", "a\nbx\nc"),
        ("<#ftl strip_whitespace=false>a\n<#if true>\nb</#if>", "a\n\nb"),
        ("<#compress>\n a \n\n  b  c\n</#compress>|", "a\nb c|"),
    ]);
}

/// What differed from FreeMarker 2.3.30 itself.
#[test]
fn what_differed_from_freemarker() {
    check(&[
        // Members that are null are members.
        ("<#list {'a': 1} as k, v>${k}${v}</#list> ${payload?keys?seq_contains('z')?c}", "a1 true"),
        ("<#list payload as k, v><#if k == 'z'>${v!'none'}</#if></#list>", "none"),
        // An item that is null is an item: what follows it is not lost.
        (
            "<#list payload.g as x>${x!'-'}<#sep>,</#list> ${payload.g?size} ${payload.g[1]!'none'}",
            "1,-,3 3 none",
        ),
        (
            "${payload.g?map(x -> x!'n')?join(',')} ${payload.g?join(',')} ${payload.g?filter(x -> x??)?size}",
            "1,n,3 1,3 2",
        ),
        (
            "<#list payload.g[1..] as x>${x!'-'}</#list> ${payload.g?reverse?size} ${(payload.g + [4])?size} ${payload.g?chunk(2)?size}",
            "-3 3 4 2",
        ),
        (
            "${payload.g?seq_index_of(3)} ${payload.g?max} ${payload.g?last} ${(payload.g?reverse)[1]!'none'} ${{'a': 1}?values?size}",
            "2 3 3 none 1",
        ),
        ("<#list payload.g>[<#items as x>${x!'_'}</#items>]</#list>", "[1_3]"),
        // Dates, in the time zone of the setting.
        (
            "<#setting time_zone='Asia/Tokyo'>${1580466030123?number_to_datetime?string('yyyy-MM-dd HH:mm:ss.SSS Z')} ${1580466030123?number_to_datetime?iso_utc}",
            "2020-01-31 19:20:30.123 +0900 2020-01-31T10:20:30Z",
        ),
        (
            "<#setting time_zone='GMT+2'>${'2020-01-31 10:00'?datetime('yyyy-MM-dd HH:mm')?iso_utc} ${'2020-01-31'?date('yyyy-MM-dd')?string('HH:mm z')}",
            "2020-01-31T08:00:00Z 00:00 +02",
        ),
        (
            "<#setting time_zone='UTC'><#assign d = 1580466030123?number_to_datetime>${d?iso('GMT+02')} ${d?iso_utc_ms} ${d?iso_utc_m_nz} ${d?string.iso} ${d?string('iso_h_nz')} ${d?date?string('xs')}",
            "2020-01-31T12:20:30+02:00 2020-01-31T10:20:30.123Z 2020-01-31T10:20 2020-01-31T10:20:30.123Z 2020-01-31T10 2020-01-31Z",
        ),
        (
            "<#setting time_zone='UTC'><#assign d = 1580466030123?number_to_datetime>${d} ${d?date} ${d?time} ${d?date?string.short} ${d?string('long_short')} ${d?string('')}",
            "Jan 31, 2020 10:20:30 AM Jan 31, 2020 10:20:30 AM 1/31/20 January 31, 2020 10:20 AM Jan 31, 2020 10:20:30 AM",
        ),
        (
            "<#setting time_zone='UTC'>${'2020-01-31'?date.iso?long?c} ${'10:20:30'?time?long?c} ${('2020-02-01'?date.xs gt '2020-01-31'?date.iso)?c} ${'2020-01-31'?date?string('EEE')}",
            "1580428800000 37230000 true Fri",
        ),
        // XML.
        (
            "${doc.o.item?has_content?c} ${doc.o.m.b?has_content?c} ${doc.o.none?has_content?c}",
            "true true false",
        ),
        (
            "${doc.o.m.@@previous_sibling_element.q} ${doc.o.@@next_sibling_element?size} ${doc.o.item[0].@@next_sibling_element.@t}",
            "2 0 x",
        ),
        ("[${doc.o.none.@@text}] ${doc.o.item.@@text}", "[] 12"),
        // Texts that are cut.
        (
            "${'The quick brown fox'?truncate(12)}|${'The quick brown fox'?truncate(13)}",
            "The [...]|The quic[...]",
        ),
        (
            "${'The quick brown fox'?truncate_w(13)}|${'The quick brown fox'?truncate_c(10)}",
            "The [...]|The q[...]",
        ),
        (
            "${'The quick brown fox'?truncate(9, '..')}|${'abc'?truncate(0)}|${'abc'?truncate(3)}",
            "The qui..|[...]|abc",
        ),
        ("${'The quick'?truncate_c(8)}|${'a  bb'?truncate_w(4, '')}", "Th[...]|a "),
        // Patterns.
        ("${'aXbxc'?keep_after('x', 'i')}|${'aXbxc'?keep_after_last('x', 'i')}", "bxc|c"),
        ("${'a1b22c'?keep_before('[0-9]+', 'r')}|${'a1b22c'?keep_before_last('[0-9]', 'r')}", "a|a1b2"),
        ("${'abc'?ensure_starts_with('[a-z]', 'x')}|${'9'?ensure_starts_with('[a-z]', 'x')}", "abc|x9"),
        ("${'\u{c9}a'?replace('\\\\w', '_', 'r')}", "\u{c9}_"),
        ("${'abc'?left_pad(3, '')}", "abc"),
        // Positions from which is searched.
        (
            "${['a', 'b', 'a']?seq_index_of('a', 1)} ${['a', 'b', 'a']?seq_last_index_of('a', 1)} ${['a']?seq_index_of('a', 5)}",
            "2 0 -1",
        ),
        (
            "${[1, 'a', 2]?drop_while(x -> x?is_number)?size} ${[1, 'a', 2]?take_while(x -> x?is_number)?size}",
            "2 1",
        ),
        ("${12345678901?int?c} ${(0 - 12345678901)?int?c}", "2147483647 -2147483648"),
        ("<#attempt>a<#stop 'why'><#recover>b ${.error}</#attempt>", "b why"),
        // The language of numbers.
        (
            "<#setting locale='de_DE'>${1234.5} ${1234.5?string('0.00')} ${1234.5?c} ${.locale}",
            "1.234,5 1234,50 1234.5 de_DE",
        ),
        (
            "<#setting locale='fr_FR'>${1234.5}<#setting locale='en_GB'> ${1234.5} #{0.5}",
            "1\u{202f}234,5 1,234.5 0.5",
        ),
    ]);
    assert!(fill("${'x'?left_pad(3, '')}").is_err() && fill("${'a'?keep_after('(', 'r')}").is_err());
}

#[test]
fn templates_are_filled_in() {
    for (template, expected) in [
        // Output and literals.
        ("a${payload.a}b", "axb"),
        (
            "${payload.n} ${payload.n?c} #{payload.n} #{payload.n; m1M1}",
            "1,234,567.25 1234567.25 1234567.25 1234567.2",
        ),
        ("${'a' + 1 + \"b\"} ${r'a\\n'} ${'\\x41\\l\\{'} ${'${payload.a}!'}", "a1b a\\n A<{ x!"),
        ("${1 + 2 * 3 - 4 / 2 % 3} ${-1 + +2} ${(1 + 2) * 3}", "5 1 9"),
        ("${0.1 + 0.2} ${10 / 4} ${1/3}", "0.3 2.5 0.333"),
        ("${payload['a']} ${payload.o['k']} ${payload.o.m.d} ${payload[\"o\"].k}", "x v 1 v"),
        ("${payload.p[1].n} ${payload.l[0..1]?join('-')} ${payload.a[0]}", "two 3-1 x"),
        ("${{'a': 1, 'b': 2}?keys?join(',')} ${([1] + [2, 3])?size} ${({'a': 1} + {'a': 2}).a}", "a,b 3 2"),
        (
            "${true?c} ${payload.b?string('yes', 'no')} ${payload.b?then(1, 2)} ${false?string}",
            "true yes 1 false",
        ),
        ("${payload.b?string?upper_case}", "TRUE"),
        // What may be missing.
        ("${payload.none!'d'} ${payload.none!} ${(payload.x.y)!'d'} ${payload.z!'null'}", "d  d null"),
        (
            "${payload.none???c} ${payload.a???c} ${(payload.x.y)???c} ${payload.none?has_content?c}",
            "false true false false",
        ),
        ("${payload.none?default(payload.gone, 'z')} <#list payload.none! as i>x</#list>", "z "),
        ("${payload.none!1 + 1}", "2"),
        // Comparisons.
        ("<#if payload.l[0] gt 2 && payload.a == 'x'>1</#if><#if (2 > 1) || nothing>2</#if>", "12"),
        ("<#if 1 lt 2><#if !(1 == 2)>y<#else>n</#if><#elseif true>no</#if>", "y"),
        ("<#if payload.n gte 5>a<#elseif payload.n lte 1>b<#else>c</#if>", "a"),
        ("<#if 1 != 2 && 'a' = 'a'>y</#if>", "y"),
        // Loops.
        ("<#list payload.l as i>${i}<#sep>, </#list>", "3, 1, 2"),
        (
            "<#list payload.l as i>${i_index}${i_has_next?c}${i?index}${i?counter}${i?is_last?c};</#list>",
            "0true01false;1true12false;2false23true;",
        ),
        ("<#list payload.e as i>x<#else>none</#list>", "none"),
        ("<#list payload.l>(<#items as i>${i}<#sep>|</#sep></#items>)<#else>none</#list>", "(3|1|2)"),
        ("<#list payload.o.m as k, v>${k}=${v}</#list>", "d=1"),
        (
            "<#list 1..3 as i><#if i == 2><#continue></#if>${i}</#list> <#list 1..9 as i><#if i == 3><#break></#if>${i}</#list>",
            "13 12",
        ),
        (
            "<#list 3..1 as i>${i}</#list><#list 0..<2 as i>${i}</#list><#list 5..*2 as i>${i}</#list>",
            "3210156",
        ),
        ("<#foreach x in payload.l>${x}</#foreach>", "312"),
        (
            "<#list payload.p as p><#list payload.l as l>${p.q}${l}<#sep>,</#list><#sep>;</#list>",
            "13,11,12;2.53,2.51,2.52",
        ),
        (
            "<#switch payload.a><#case 'y'>1<#break><#case 'x'>2<#case 'z'>3<#break><#default>4</#switch>",
            "23",
        ),
        ("<#switch 9><#case 1>1<#default>d</#switch>", "d"),
        // Variables, macros, functions.
        ("<#assign x = 1 y = 'b'><#assign x += 2><#assign x++>${x}${y}", "4b"),
        ("<#assign c>a${payload.a}</#assign>[${c}]", "[ax]"),
        ("<#macro m a b='d'>${a}${b}<#nested 5/></#macro><@m a=1; n>${n}</@m><@m 2 3/>", "1d523"),
        ("<#macro m><#local v = 1>${v}<#return>x</#macro><@m/>${v!'none'}", "1none"),
        ("<#function f n><#if n lte 1><#return 1></#if><#return n * f(n - 1)></#function>${f(5)}", "120"),
        (
            "<#macro list items><#list items as i><#nested i></#list></#macro><@list items=payload.l; x>(${x})</@list>",
            "(3)(1)(2)",
        ),
        ("<@late/><#macro late>l</#macro>", "l"),
        ("<#macro m a rest...>${a}${rest?size}</#macro><@m 1 2 3/>", "12"),
        ("<#attempt>a${payload.none}<#recover>r</#attempt>", "r"),
        ("<#escape x as x?xml>${'<'}<#noescape>${'<'}</#noescape></#escape>${'<'}", "&lt;<<"),
        ("<#escape x as x!'none'>${payload.none}</#escape>", "none"),
        ("<#outputformat 'XML'>${'<a>'}${'<b>'?no_esc}</#outputformat>", "&lt;a&gt;<b>"),
        ("<#ftl output_format='HTML'>${'\\''}", "&#39;"),
        ("<#setting number_format='0.00'>${1.5} <#setting boolean_format='y,n'>${true}", "1.50 y"),
        ("<#compress>  a \n\n  b  </#compress>", "a\nb"),
        ("<#noparse>${x}<#if></#noparse><#-- ${gone} --><#comment>${y}</#comment>", "${x}<#if>"),
        // Strict syntax: nothing else is a tag.
        (
            "<list><items><comment><case><return><compress>[#if x]</list>$ # {} <#",
            "<list><items><comment><case><return><compress>[#if x]</list>$ # {} <#",
        ),
        // Built-ins.
        (
            "${payload.l?sort?join(',')} ${payload.w?sort?join('')} ${payload.l?reverse?join('')} ${payload.p?sort_by('q')?last.n}",
            "1,2,3 abC 213 two",
        ),
        (
            "${payload.l?size} ${payload.l?first} ${payload.l?last} ${payload.l?min} ${payload.l?max} ${payload.o?size}",
            "3 3 2 1 3 2",
        ),
        (
            "${payload.l?seq_contains(2)?c} ${payload.l?seq_index_of(2)} ${payload.l?chunk(2)?size} ${payload.e?join(',', 'none')}",
            "true 2 2 none",
        ),
        (
            "${payload.l?map(x -> x * 2)?join(',')} ${payload.l?filter(x -> x gt 1)?join(',')} ${payload.p?map(p -> p.n)?join('+')}",
            "6,2,4 3,2 one+two",
        ),
        (
            "${'abc'?upper_case}${'ABC'?lower_case}${'abc def'?cap_first}${'abc dEF'?capitalize}${' x '?trim}",
            "ABCabcAbc defAbc Defx",
        ),
        (
            "${'abc'?length} ${'abc'?contains('b')?c} ${'abc'?index_of('c')} ${'abcabc'?last_index_of('b')} ${'abc'?starts_with('a')?c}",
            "3 true 2 4 true",
        ),
        (
            "${'a-b'?replace('-', '+')} ${'a1b2'?replace('[0-9]', '#', 'r')} ${'ab'?replace('(a)(b)', '$2$1', 'r')}",
            "a+b a#b# ba",
        ),
        (
            "${payload.s?split(',')?size} ${payload.s?split('[,;]', 'r')?join('|')} ${'abc'?substring(1)} ${'abc'?substring(0, 2)}",
            "2 a|b|c bc ab",
        ),
        (
            "${'abc'?split('', 'r')?join('|')} ${'aaa'?split('a*', 'r')?size} ${'a b  c'?split('\\\\s*', 'r')?join('|')}",
            "a|b|c 0 a||b||c",
        ),
        (
            "${'a,b,,'?split(',', 'r')?size} ${'a,b,,'?split(',')?size} ${',a'?split(',', 'r')?size} ${''?split(',', 'r')?size} ${'abc'?split('^', 'r')?size}",
            "2 4 2 1 1",
        ),
        (
            "${'aXbxc'?split('x', 'i')?join('|')} ${'axX'?split('x', 'i')?size} ${'axX'?split('x', 'ri')?size}",
            "a|b|c 3 1",
        ),
        (
            "${'7'?left_pad(3, '0')} ${'7'?right_pad(3)}| ${'a.b.c'?keep_after('.')} ${'a.b.c'?keep_before_last('.')}",
            "007 7  | b.c a.b",
        ),
        (
            "${payload.quote?json_string} ${payload.quote?xml} ${'a b/c'?url}",
            "a\\\"b\\\\c\\n<x>&' a&quot;b\\c\n&lt;x&gt;&amp;&apos; a%20b%2Fc",
        ),
        (
            "${'12.50'?number + 1} ${1.7?int} ${1.5?round} ${(-1.5)?floor} ${1.2?ceiling} ${(-3)?abs} ${27?lower_abc}",
            "13.5 1 2 -2 2 3 aa",
        ),
        (
            "${3.14159?string('0.00')} ${0.256?string.percent} ${1234.5?string.computer} ${5?string['000']}",
            "3.14 26% 1234.5 005",
        ),
        (
            "${payload.a?is_string?c}${payload.l?is_sequence?c}${payload.o?is_hash?c}${payload.n?is_number?c}",
            "truetruetruetrue",
        ),
        (
            "${'abc'?matches('[a-c]+')?c} ${'x'?switch('x', 1, 2)} ${'a'?ensure_ends_with('/')} ${'ab'?remove_beginning('a')}",
            "true 1 a/ b",
        ),
        (
            "${'2020-01-31'?date?string('dd.MM.yyyy')} ${'2020-01-31 10:20:30'?datetime('yyyy-MM-dd HH:mm:ss')?string('HH:mm')}",
            "31.01.2020 10:20",
        ),
        ("${payload.l?upperAbc!}${'aB'?upperCase}", ""),
        // XML.
        (
            "${doc.o.@id} ${doc.o.item[1].q} ${doc.o.item?size} ${doc['//item[2]/q']} ${doc[\"count(//item)\"]}",
            "7 2 2 2 2",
        ),
        (
            "<#list doc.o.item as i>${i.q}${i.@t[0]!}<#sep>,</#list> ${doc.o.item[0]?node_name} ${doc.o?children?size}",
            "1,2x item 4",
        ),
        ("${doc.o.n?size} ${doc.o.m.@@text} ${doc.o.m.@@markup} ${doc.o['*']?size}", "0 ac <m>a<b/>c</m> 4"),
        ("<#ftl ns_prefixes={'p': 'u'}>${doc.o['p:n']}", "N"),
        ("${trp['user-agent']} ${args.arg1}", "me lit"),
    ] {
        let found = fill(template);
        if template.contains("upperAbc") {
            assert!(found.is_err(), "{template}: {found:?}");
            continue;
        }
        assert_eq!(found.as_deref(), Ok(expected), "{template}");
    }
    assert!(fill("${.now?long gt 0}").is_err());
    assert!(fill("${.now?string('yyyy')}").is_ok_and(|year| year.len() == 4));
}

#[test]
fn lines_of_tags_leave_nothing() {
    for (template, expected) in [
        ("a\n<#if true>\nb\n</#if>\nc\n", "a\nb\nc\n"),
        ("<#list 1..2 as i>\n  ${i}\n</#list>\n", "  1\n  2\n"),
        ("  <#assign x = 1>  \n${x}", "1"),
        ("x <#if true>\ny</#if>", "x \ny"),
        ("<#-- c -->\na", "a"),
        ("a <#t>\n b <#lt>\n", "a b \n"),
        ("<#if true>${1} </#if>\n", "1 \n"),
        ("<#ftl strip_whitespace=false><#if true>\na</#if>", "\na"),
    ] {
        assert_eq!(fill(template).as_deref(), Ok(expected), "{template:?}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (template, part) in [
        ("<#if x>", "load: `<#if>` is not closed"),
        ("</#if>", "load: `</#if>` has no beginning"),
        ("<#else>", "load: `<#else>` has no beginning"),
        ("<#nonsense>", "load: there is no directive `<#nonsense>`"),
        ("${x?nonsense}", "load: there is no built-in `?nonsense`"),
        ("${x?eval}", "load: `?eval` is not executable here"),
        ("<#include 'x'>", "load: `<#include>` is not executable here"),
        ("${", "load: expected an expression"),
        ("${a b}", "load: expected `}`, found `b`"),
        ("${a", "load: `${` has no `}`"),
        ("${'a}", "load: this string has no end"),
        ("${(a}", "load: expected `)`"),
        ("<#break>", "load: `<#break>` stands outside of list"),
        ("<#list x as y", "load: expected `>`"),
        ("<#-- x", "load: this comment has no end"),
        ("${payload.none}", "`payload.none` is null or missing"),
        ("${payload.x.y!1}", "`payload.x` is null or missing"),
        ("${payload.l}", "is a sequence"),
        ("${payload}", "is a hash"),
        ("${payload.b}", "write it with ?c"),
        ("${payload.a + payload.l}", "Expected a string"),
        ("${payload.a - 1}", "Expected a number, but `payload.a` is a string"),
        ("<#if payload.a>x</#if>", "Expected a boolean"),
        ("<#if payload.a == 1>x</#if>", "cannot be compared"),
        ("${1 / 0}", "division by zero"),
        ("${'x'?number}", "is not a number"),
        ("${'1e20000000'?number}", "is not a number, or one that is too large"),
        ("${doc.o.none}", "no XML node matches"),
        ("${doc.o.item.q}", "2 XML nodes match"),
        ("${doc['//[']}", "the XPath `//[`"),
        ("${doc.o}", "only XML elements without elements inside"),
        ("${payload.a[5]}", "has no character 5"),
        ("<@none/>", "`none` is null or missing"),
        ("<#stop 'why'>", "why"),
        ("<#macro m a></#macro><@m/>", "without its parameter `a`"),
        ("<#macro m></#macro><@m x=1/>", "has no parameter `x`"),
    ] {
        let found = fill(template).unwrap_err();
        assert!(found.contains(part), "{template}: {found}");
    }
    let error = Template::parse("a\n  ${x?nonsense}").unwrap_err();
    assert_eq!(error.place, Place { line: 2, column: 7 });
    let deep = format!("${{{}1{}}}", "(".repeat(5000), ")".repeat(5000));
    assert!(Template::parse(&deep).unwrap_err().message.contains("nest deeper"));
    let deep = "<#if true>".repeat(5000);
    assert!(Template::parse(&deep).unwrap_err().message.contains("nest deeper"));
    let long = "${1}".repeat(100_000);
    assert!(Template::parse(&long).unwrap_err().message.contains("50000 tags"));
}

#[test]
fn every_template_ends() {
    for (template, part) in [
        ("<#macro m><@m/></#macro><@m/>", "call depth"),
        ("<#function f x><#return f(x)></#function>${f(1)}", "call depth"),
        ("<#list 1.. as i></#list>", "longer than 50 ms"),
        ("<#list 1..99999999 as i><#list 1..99999999 as j></#list></#list>", "longer than 50 ms"),
        ("<#list 1..99999999 as i>${payload.quote}</#list>", "larger than the 1048576 bytes"),
        ("<#assign s = 'x'><#list 1..40 as i><#assign s = s + s></#list>", "larger than the 1048576 bytes"),
        ("<#assign l = [1]><#list 1..40 as i><#assign l = l + l></#list>", "larger than the 1048576 bytes"),
        ("<#assign l = [1]><#list 1..40 as i><#assign l = [l, l]></#list>${l?size}", "2"),
        ("${(1..)?map(x -> x)?size}", "a range without an end"),
        ("${(1..200000)?map(x -> x)?size}", "a range of 200000 items is too long"),
        ("${'a'?left_pad(100000000)}", "padded to 1000000 characters"),
        (
            "${'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'?matches('(a+)+\\\\1$')?c}",
            "",
        ),
        ("<#attempt><#list 1.. as i></#list><#recover>x</#attempt>", "longer than 50 ms"),
    ] {
        let time = std::time::Duration::from_millis(if part.contains("50 ms") { 50 } else { 60_000 });
        let (found, _) = meter::within(time, None, || fill(template));
        let found = found.unwrap_or_else(|error| error);
        assert!(found.contains(part), "{template}: {found}");
    }
}

/// Behind an error that `!` or `<#attempt>` takes, everything is as it was before it.
#[test]
fn what_an_error_leaves_is_taken_away() {
    const F: &str = "<#function f x><#list [1] as own><#return x.y.z></#list></#function>";
    for (template, expected) in [
        (format!("{F}${{(f({{}}))!'d'}}${{a!''}}<#assign a=1>${{a}}"), "d1".to_owned()),
        (format!("{F}<#list 1..200 as i>${{(f({{}}))!'d'}}</#list>${{own!'-'}}"), "d".repeat(200) + "-"),
        (format!("{F}<#macro m a>${{(f(a))!'d'}}${{a?size}}</#macro><#assign h={{}}><@m h/>"), "d0".to_owned()),
        ("${([1]?map(x -> x.y.z))!'d'}${x!'-'}".replace("x.y.z", "nope.y.z"), "d-".to_owned()),
        (
            "<#macro m><#nested></#macro><#list [1, 2] as i><#attempt><@m><#list [1] as j>${nope}</#list></@m>\
             <#recover>r</#attempt>${j!'-'}${i}</#list>"
                .to_owned(),
            "r-1r-2".to_owned(),
        ),
    ] {
        assert_eq!(fill(&template), Ok(expected), "{template}");
    }
}

/// Values nest as deep as templates are patient.
#[test]
fn deep_values_end() {
    for (template, expected) in [
        ("<#assign a=[]><#list 1..100000 as i><#assign a=[a]></#list>${a?size}", "1"),
        ("<#assign a={}><#list 1..50000 as i><#assign a={'k': a}></#list>${a?size}", "1"),
        (
            "<#assign a=[]><#list 1..10000 as i><#assign a=[{'k': a}, 1] + [2]></#list><#assign b=a>${b?size}",
            "3",
        ),
    ] {
        assert_eq!(fill(template), Ok(expected.to_owned()), "{template}");
    }
}

/// What a step costs grows with what it looks at.
#[test]
fn long_texts_and_many_nodes_are_counted() {
    let stopped = |template: &str| {
        let (_, used) = meter::inline(100_000, || fill(template));
        used.stopped.is_some()
    };
    assert!(stopped("<#assign s=''?left_pad(100000)><#list 0..1000 as i><#assign x=s[i]></#list>"));
    assert!(stopped("<#assign s=''?left_pad(100000)><#list 0..1000 as i><#assign x=s[i..i+1]></#list>"));
    assert!(!stopped("<#assign s=''?left_pad(100)><#list 0..99 as i><#assign x=s[i]></#list>"));
    let deep = format!("{}{}", "<a>".repeat(200), "</a>".repeat(200));
    let filled = fill_with("${doc.**.**.**?size}", json!({}), &deep);
    assert!(filled.as_ref().is_err_and(|why| why.contains("makes more than")), "{filled:?}");
    let filled = fill_with("${doc.**?size} ${doc.a.**?size} ${doc.*?size}", json!({}), &deep);
    assert_eq!(filled, Ok("200 199 1".to_owned()));
}

#[test]
fn numbers_of_any_size_are_read_and_sorted() {
    assert!(fill("${'1e-2147483648'?number}").is_err());
    let all = "[0.5, -3, 1.00000000000000000001, 1, 123456789012345678901234567891, 123456789012345678901234567890, 1e300]";
    let payload: serde_json::Value = serde_json::from_str(&format!("{{\"all\": {all}}}")).unwrap();
    let from_json = fill_with("<#list payload.all?sort as n>${n?c} </#list>", payload, "<a/>");
    let expected = "-3 0.5 1 1 123456789012345678901234567890 123456789012345678901234567891 ";
    assert!(from_json.as_ref().is_ok_and(|text| text.starts_with(expected)), "{from_json:?}");
}

#[test]
fn deep_recursion_fits_into_the_stack() {
    let nested = format!("{}x{}", "<#if true>".repeat(98), "</#if>".repeat(98));
    let text = format!("<#macro m n>{nested}<#if n gt 0><@m n - 1/></#if></#macro><@m 70/>");
    let run = move || fill(&text);
    let found = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    assert!(found.unwrap_err().contains("deep"));
    let chain = format!("${{{}}}", "1".to_owned() + &" + (1".repeat(95) + &")".repeat(95));
    assert_eq!(fill(&chain).as_deref(), Ok("96"));
}

mod any {
    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = String> {
        proptest::sample::select(vec![
            "<#if ",
            "<#list ",
            "<#else>",
            "</#if>",
            "</#list>",
            "${",
            "}",
            ">",
            "x",
            "payload",
            ".l",
            "[",
            "]",
            "(",
            ")",
            "?size",
            "?sort",
            "?map(",
            "x -> x",
            "!",
            "??",
            " as i",
            "1",
            "..",
            "..<",
            "'a'",
            "\"",
            "+",
            "-",
            "*",
            "/",
            "%",
            "<#macro m>",
            "</#macro>",
            "<@m/>",
            "<#nested>",
            "<#assign x=",
            "{",
            ":",
            ",",
            "==",
            "\n",
            " ",
            "<#sep>",
            "doc",
            "['//q']",
            "?string('0.0')",
            "?replace('a','b')",
            "é",
            "<#t>",
            "<#switch x>",
            "<#case 1>",
            "</#switch>",
        ])
        .prop_map(str::to_owned)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 2000 } else { 20000 }))]
        #[test]
        fn any_text_is_filled_in_or_refused(parts in proptest::collection::vec(part(), 0..24)) {
            let text = parts.concat();
            let _ = meter::inline(100_000, || fill(&text));
        }
    }
}
