#!/usr/bin/env python3
"""Writes a project of many artifacts, for measuring how long loading and `busbar check` take.

    bench/project.py DIRECTORY [ARTIFACTS]

The layout is that of a configuration directory. Of ten artifacts two are APIs, two proxy services, three sequences, two endpoints and one a
template or a local entry, of the size that such artifacts have in projects: four resources, ten to twenty steps, expressions on JSON and XML.
The same arguments always give the same bytes.
"""

import os
import sys

NAMESPACE = 'xmlns="http://ws.apache.org/ns/synapse"'


def endpoint(n):
    return "endpoints", f"Backend{n}", f"""<endpoint {NAMESPACE} name="Backend{n}">
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
"""


def sequence(n):
    return "sequences", f"Prepare{n}", f"""<sequence {NAMESPACE} name="Prepare{n}" onError="fault">
  <log level="custom" category="DEBUG">
    <property name="step" value="prepare {n}"/>
    <property name="symbol" expression="//m:order/m:symbol" xmlns:m="http://services.samples"/>
  </log>
  <property name="customer" expression="json-eval($.order.customer.id)" scope="default" type="STRING"/>
  <property name="total" expression="sum(//item/price)" scope="default"/>
  <header name="X-Request" scope="transport" expression="get-property('MessageID')"/>
  <filter xpath="$ctx:total &gt; 1000 and $trp:X-Priority = 'high'">
    <then>
      <property name="priority" value="{n % 10}"/>
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
  <call-template target="Audit{n % 25}">
    <with-param name="where" value="Prepare{n}"/>
    <with-param name="customer" value="{{get-property('customer')}}"/>
  </call-template>
</sequence>
"""


def proxy(n, endpoints, sequences):
    return "proxy-services", f"Orders{n}", f"""<proxy {NAMESPACE} name="Orders{n}" transports="http https" startOnLoad="true">
  <target faultSequence="fault">
    <inSequence>
      <sequence key="Prepare{n % sequences}"/>
      <validate>
        <schema key="Schema{n % 25}"/>
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
        <endpoint key="Backend{n % endpoints}"/>
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
"""


def api(n, endpoints, sequences):
    resources = "".join(
        f"""  <resource methods="{method}" uri-template="/{path}/{{id}}" faultSequence="fault">
    <inSequence>
      <sequence key="Prepare{(n * 4 + at) % sequences}"/>
      <property name="id" expression="$ctx:uri.var.id"/>
      <payloadFactory media-type="json">
        <format>{{"id": "$1", "customer": "$2", "path": "{path}"}}</format>
        <args>
          <arg evaluator="xml" expression="$ctx:id"/>
          <arg evaluator="json" expression="$.order.customer"/>
        </args>
      </payloadFactory>
      <call>
        <endpoint key="Backend{(n + at) % endpoints}"/>
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
"""
        for at, (method, path) in enumerate(
            [("GET", "orders"), ("POST", "orders"), ("PUT", "customers"), ("DELETE", "items")]
        )
    )
    return "api", f"OrderApi{n}", f'<api {NAMESPACE} name="OrderApi{n}" context="/orders{n}">\n{resources}</api>\n'


def template(n):
    return "templates", f"Audit{n}", f"""<template {NAMESPACE} name="Audit{n}">
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
"""


def schema(n):
    return "local-entries", f"Schema{n}", f"""<localEntry {NAMESPACE} key="Schema{n}">
  <xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
    <xs:element name="order">
      <xs:complexType>
        <xs:sequence>
          <xs:element name="symbol" type="xs:string" maxOccurs="{n + 1}"/>
          <xs:element name="price" type="xs:decimal"/>
        </xs:sequence>
      </xs:complexType>
    </xs:element>
  </xs:schema>
</localEntry>
"""


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    directory, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    fixed = 50  # 25 templates and 25 schemas: others name them
    share = (count - fixed) / 9
    sequences, endpoints, proxies = int(share * 3), int(share * 2), int(share * 2)
    apis = count - fixed - sequences - endpoints - proxies
    artifacts = [template(n) for n in range(25)] + [schema(n) for n in range(25)]
    artifacts += [sequence(n) for n in range(sequences)] + [endpoint(n) for n in range(endpoints)]
    artifacts += [proxy(n, endpoints, sequences) for n in range(proxies)]
    artifacts += [api(n, endpoints, sequences) for n in range(apis)]
    size = 0
    for folder, name, text in artifacts:
        os.makedirs(os.path.join(directory, folder), exist_ok=True)
        with open(os.path.join(directory, folder, name + ".xml"), "w") as file:
            file.write(text)
        size += len(text)
    print(f"{len(artifacts)} artifacts, {size} bytes in {directory}")


if __name__ == "__main__":
    main()
