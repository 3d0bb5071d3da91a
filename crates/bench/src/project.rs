//! A project of many artifacts, to measure what loading and checking it takes: the layout of a configuration directory, and of ten artifacts two APIs, two proxy
//! services, three sequences, two endpoints, and one template or local entry, of the size that such artifacts have in projects: four resources, ten to
//! twenty steps, expressions on JSON and XML. The same number always gives the same bytes, and nothing is found in them.

use std::path::Path;

const NAMESPACE: &str = "xmlns=\"http://ws.apache.org/ns/synapse\"";

/// Templates and schemas: others name them.
const SHARED: usize = 25;

/// The least number of artifacts.
pub const LEAST: usize = 2 * SHARED + 9;

/// An artifact: its folder, its name, its text.
type Artifact = (&'static str, String, String);

fn endpoint(n: usize) -> Artifact {
    let text = format!(
        r##"<endpoint {NAMESPACE} name="Backend{n}">
  <http method="post" uri-template="http://127.0.0.1:9000/orders/{n}/{{uri.var.id}}">
    <timeout>
      <duration>10000</duration>
      <responseAction>fault</responseAction>
    </timeout>
    <suspendOnFailure>
      <errorCodes>101503,101504</errorCodes>
      <initialDuration>1000</initialDuration>
      <progressionFactor>2.0</progressionFactor>
      <maximumDuration>60000</maximumDuration>
    </suspendOnFailure>
    <markForSuspension>
      <errorCodes>101505</errorCodes>
      <retriesBeforeSuspension>3</retriesBeforeSuspension>
      <retryDelay>100</retryDelay>
    </markForSuspension>
  </http>
</endpoint>
"##
    );
    ("endpoints", format!("Backend{n}"), text)
}

fn sequence(n: usize) -> Artifact {
    let (priority, audit) = (n % 10, n % SHARED);
    let text = format!(
        r##"<sequence {NAMESPACE} name="Prepare{n}" onError="fault">
  <log level="custom" category="DEBUG">
    <property name="step" value="prepare {n}"/>
    <property name="symbol" expression="//m:order/m:symbol" xmlns:m="http://services.samples"/>
  </log>
  <property name="customer" expression="json-eval($.order.customer.id)" scope="default" type="STRING"/>
  <property name="total" expression="sum(//item/price)" scope="default"/>
  <header name="X-Request" scope="transport" expression="get-property('MessageID')"/>
  <filter xpath="$ctx:total &gt; 1000 and $trp:X-Priority = 'high'">
    <then>
      <property name="priority" value="{priority}"/>
      <enrich>
        <source type="property" property="priority"/>
        <target type="body" action="child"/>
      </enrich>
    </then>
    <else>
      <property name="priority" value="0"/>
    </else>
  </filter>
  <switch source="get-property('customer')">
    <case regex="A.*">
      <property name="region" value="north"/>
    </case>
    <case regex="B[0-9]+">
      <property name="region" value="south"/>
    </case>
    <default>
      <property name="region" value="none"/>
    </default>
  </switch>
  <call-template target="Audit{audit}">
    <with-param name="where" value="Prepare{n}"/>
    <with-param name="customer" value="{{get-property('customer')}}"/>
  </call-template>
</sequence>
"##
    );
    ("sequences", format!("Prepare{n}"), text)
}

fn proxy(n: usize, endpoints: usize, sequences: usize) -> Artifact {
    let (prepare, schema, backend) = (n % sequences, n % SHARED, n % endpoints);
    let text = format!(
        r##"<proxy {NAMESPACE} name="Orders{n}" transports="http https" startOnLoad="true">
  <target faultSequence="fault">
    <inSequence>
      <sequence key="Prepare{prepare}"/>
      <validate>
        <schema key="Schema{schema}"/>
        <on-fail>
          <makefault version="soap11">
            <code xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" value="soap:Client"/>
            <reason value="the order is not valid"/>
          </makefault>
          <respond/>
        </on-fail>
      </validate>
      <payloadFactory media-type="xml">
        <format>
          <order xmlns="">
            <customer>$1</customer>
            <total>$2</total>
          </order>
        </format>
        <args>
          <arg evaluator="xml" expression="$ctx:customer"/>
          <arg evaluator="xml" expression="$ctx:total"/>
        </args>
      </payloadFactory>
      <send>
        <endpoint key="Backend{backend}"/>
      </send>
    </inSequence>
    <outSequence>
      <property name="messageType" value="text/xml" scope="axis2"/>
      <log level="custom">
        <property name="status" expression="$axis2:HTTP_SC"/>
      </log>
      <send/>
    </outSequence>
  </target>
</proxy>
"##
    );
    ("proxy-services", format!("Orders{n}"), text)
}

fn api(n: usize, endpoints: usize, sequences: usize) -> Artifact {
    let methods = [("GET", "orders"), ("POST", "orders"), ("PUT", "customers"), ("DELETE", "items")];
    let resource = |(at, (method, path)): (usize, (&str, &str))| {
        let (prepare, backend) = ((n * 4 + at) % sequences, (n + at) % endpoints);
        format!(
            r##"  <resource methods="{method}" uri-template="/{path}/{{id}}" faultSequence="fault">
    <inSequence>
      <sequence key="Prepare{prepare}"/>
      <property name="id" expression="$ctx:uri.var.id"/>
      <payloadFactory media-type="json">
        <format>{{"id": "$1", "customer": "$2", "path": "{path}"}}</format>
        <args>
          <arg evaluator="xml" expression="$ctx:id"/>
          <arg evaluator="json" expression="$.order.customer"/>
        </args>
      </payloadFactory>
      <call>
        <endpoint key="Backend{backend}"/>
      </call>
      <filter source="$axis2:HTTP_SC" regex="2..">
        <then>
          <property name="messageType" value="application/json" scope="axis2"/>
        </then>
        <else>
          <property name="HTTP_SC" value="502" scope="axis2"/>
          <payloadFactory media-type="json">
            <format>{{"error": "the backend answered $1"}}</format>
            <args>
              <arg evaluator="xml" expression="$axis2:HTTP_SC"/>
            </args>
          </payloadFactory>
        </else>
      </filter>
      <respond/>
    </inSequence>
  </resource>
"##
        )
    };
    let resources: String = methods.into_iter().enumerate().map(resource).collect();
    let text = format!("<api {NAMESPACE} name=\"OrderApi{n}\" context=\"/orders{n}\">\n{resources}</api>\n");
    ("api", format!("OrderApi{n}"), text)
}

fn template(n: usize) -> Artifact {
    let text = format!(
        r##"<template {NAMESPACE} name="Audit{n}">
  <parameter name="where"/>
  <parameter name="customer"/>
  <sequence>
    <log level="custom">
      <property name="where" expression="$func:where"/>
      <property name="customer" expression="$func:customer"/>
      <property name="time" expression="get-property('SYSTEM_DATE', 'yyyy-MM-dd')"/>
    </log>
  </sequence>
</template>
"##
    );
    ("templates", format!("Audit{n}"), text)
}

fn schema(n: usize) -> Artifact {
    let most = n + 1;
    let text = format!(
        r##"<localEntry {NAMESPACE} key="Schema{n}">
  <xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
    <xs:element name="order">
      <xs:complexType>
        <xs:sequence>
          <xs:element name="symbol" type="xs:string" maxOccurs="{most}"/>
          <xs:element name="price" type="xs:decimal"/>
        </xs:sequence>
      </xs:complexType>
    </xs:element>
  </xs:schema>
</localEntry>
"##
    );
    ("local-entries", format!("Schema{n}"), text)
}

/// Writes a project of `count` artifacts, at least [`LEAST`], into a folder; answers how many bytes they have.
///
/// # Errors
/// What cannot be written.
pub fn write(folder: &Path, count: usize) -> Result<usize, String> {
    let fail = |path: &Path, error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if count < LEAST {
        return Err(format!("{count} artifacts are too few: at least {LEAST}"));
    }
    let share = count - 2 * SHARED;
    let (sequences, endpoints) = (share * 3 / 9, share * 2 / 9);
    let apis = share - sequences - 2 * endpoints;
    let mut artifacts: Vec<Artifact> = (0..SHARED).flat_map(|n| [template(n), schema(n)]).collect();
    artifacts.extend((0..sequences).map(sequence).chain((0..endpoints).map(endpoint)));
    artifacts.extend((0..endpoints).map(|n| proxy(n, endpoints, sequences)));
    artifacts.extend((0..apis).map(|n| api(n, endpoints, sequences)));
    let mut bytes = 0;
    for (kind, name, text) in artifacts {
        let folder = folder.join(kind);
        std::fs::create_dir_all(&folder).map_err(|error| fail(&folder, error))?;
        let path = folder.join(name + ".xml");
        std::fs::write(&path, &text).map_err(|error| fail(&path, error))?;
        bytes += text.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_artifacts_are_written() {
        let folder = std::env::temp_dir().join(format!("busbar-bench-project-{}", std::process::id()));
        assert!(write(&folder, 500).unwrap() > 500_000);
        let files = std::fs::read_dir(&folder).unwrap().flatten();
        let files: usize = files.map(|kind| std::fs::read_dir(kind.path()).unwrap().count()).sum();
        assert_eq!(files, 500);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(write(&folder, LEAST - 1).unwrap_err().contains("too few"));
    }
}
