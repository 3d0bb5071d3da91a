//! What loading says of parameters that are wrong for every message.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use support::main;

const FILES: &str = "<!--top--><localEntry key='L'><file.init><connectionType>LOCAL</connectionType><workingDir>/tmp</workingDir></file.init></localEntry>\
    <localEntry key='C'><http.init><baseUrl>http://h</baseUrl></http.init></localEntry>";

#[test]
fn literal_parameters_are_checked() {
    for (step, wanted) in [
        (
            "<CSV.csvToJson><valueSeparator>||</valueSeparator></CSV.csvToJson>",
            "`valueSeparator` of `CSV.csvToJson` cannot be `||`",
        ),
        (
            "<CSV.csvToJson><columnsToSkip>x</columnsToSkip></CSV.csvToJson>",
            "`columnsToSkip` of `CSV.csvToJson` cannot be `x`",
        ),
        (
            "<CSV.csvToJson><dataRowsToSkip>-1</dataRowsToSkip></CSV.csvToJson>",
            "`dataRowsToSkip` of `CSV.csvToJson` cannot be `-1`",
        ),
        (
            "<CSV.csvToJson><headerPresent>Presnt</headerPresent></CSV.csvToJson>",
            "`headerPresent` of `CSV.csvToJson` cannot be `Presnt`",
        ),
        (
            "<CSV.csvToJson><dataTypes>nubmer</dataTypes></CSV.csvToJson>",
            "`dataTypes` of `CSV.csvToJson` cannot be `nubmer`",
        ),
        (
            "<CSV.csvToJson><csvEmptyValues>Nul</csvEmptyValues></CSV.csvToJson>",
            "`csvEmptyValues` of `CSV.csvToJson` cannot be `Nul`",
        ),
        (
            "<CSV.csvToJson><overwriteBody>yes</overwriteBody></CSV.csvToJson>",
            "`overwriteBody` of `CSV.csvToJson` cannot be `yes`",
        ),
        (
            "<file.write configKey='L'><filePath>a</filePath><writeMode>Apend</writeMode></file.write>",
            "`writeMode` of `file.write` cannot be `Apend`",
        ),
        ("<file.write configKey='L'/>", "`file.write` has no `filePath`"),
        (
            "<file.read configKey='L'><path>a</path><readMode>Specific Line</readMode></file.read>",
            "`file.read` has no `lineNum`",
        ),
        (
            "<file.read configKey='L'><path>a</path><startLineNum>x</startLineNum></file.read>",
            "`startLineNum` of `file.read` cannot be `x`",
        ),
        (
            "<file.listFiles configKey='L'><directoryPath>a</directoryPath><matchingPattern>*.txt</matchingPattern></file.listFiles>",
            "`matchingPattern` of `file.listFiles` cannot be `*.txt`",
        ),
        (
            "<file.listFiles configKey='L'><directoryPath>a</directoryPath><sortingOrder>Up</sortingOrder></file.listFiles>",
            "`sortingOrder` of `file.listFiles` cannot be `Up`",
        ),
        (
            "<file.splitFile configKey='L'><sourceFilePath>a</sourceFilePath><targetDirectory>b</targetDirectory><splitMode>Lines</splitMode></file.splitFile>",
            "`splitMode` of `file.splitFile` cannot be `Lines`",
        ),
        (
            "<http.post configKey='C'><requestBodyType>YAML</requestBodyType></http.post>",
            "`requestBodyType` of `http.post` cannot be `YAML`",
        ),
        (
            "<http.post configKey='C'><requestBodyType>JSON</requestBodyType><requestBodyJson>{\"a\":}</requestBodyJson></http.post>",
            "`requestBodyJson` of `http.post` cannot be `{\"a\":}`",
        ),
        (
            "<http.post configKey='C'><requestBodyType>XML</requestBodyType><requestBodyXml>&lt;a></requestBodyXml></http.post>",
            "`requestBodyXml` of `http.post` cannot be `<a>`",
        ),
        ("<redis.get/>", "`redis.get` has no `redisKey`"),
    ] {
        let tested = main(&format!("{step}{FILES}"));
        assert_eq!(tested.found, [format!("bad-value: {wanted}")], "{step}");
    }
    let tested = main(
        "<http.get configKey='X'/><!--top--><localEntry key='X'><http.init><baseUrl>h:80</baseUrl></http.init></localEntry>",
    );
    assert!(
        tested.found.iter().any(|finding| finding.contains("does not begin with http://")),
        "{:?}",
        tested.found
    );
}

#[test]
fn what_is_right_is_not_reported() {
    for step in [
        "<CSV.csvToJson><valueSeparator>tab</valueSeparator><columnsToSkip>!(2,\"a\"),1:*</columnsToSkip><dataTypes>String, number,</dataTypes></CSV.csvToJson>",
        "<CSV.csvToJson><headerPresent>{$ctx:h}</headerPresent><dataRowsToSkip>${vars.n}</dataRowsToSkip></CSV.csvToJson>",
        "<file.write configKey='L'><filePath>a</filePath><writeMode>create new</writeMode><overwriteBody>TRUE</overwriteBody><responseVariable>x</responseVariable></file.write>",
        "<file.listFiles configKey='L'><directoryPath>/</directoryPath><fileFilterType>ant</fileFilterType><matchingPattern>*.txt</matchingPattern></file.listFiles>",
        "<file.read configKey='L'><path>a</path><readMode>Up To Line</readMode><endLineNum>3</endLineNum></file.read>",
        "<http.post configKey='C'><requestBodyType>JSON</requestBodyType><requestBodyJson>{\"a\": ${payload.b}}</requestBodyJson></http.post>",
        "<http.post configKey='C'><requestBodyType>XML</requestBodyType><requestBodyXml><a/></requestBodyXml></http.post>",
        "<http.post configKey='C'><requestBodyType>{$ctx:t}</requestBodyType><requestBodyJson>x</requestBodyJson></http.post>",
    ] {
        let tested = main(&format!("{step}{FILES}"));
        assert!(tested.found.is_empty(), "{step}: {:?}", tested.found);
    }
}
