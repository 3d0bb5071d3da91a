import java.io.StringWriter;
import javax.xml.transform.OutputKeys;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.apache.camel.AggregationStrategy;
import org.apache.camel.Exchange;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.camel.model.ChoiceDefinition;
import org.apache.camel.support.builder.Namespaces;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import org.w3c.dom.NodeList;

/** The scenarios of the round as Camel routes: Round PORT BACKEND FOLDER, with the stylesheets in FOLDER. */
public class Round {
    static final String ROUTE = "xadmin;server1;community#1.0##";
    static final String SOAP = "http://schemas.xmlsoap.org/soap/envelope/";

    public static void main(String[] arguments) throws Exception {
        String port = arguments[0], backend = arguments[1], folder = arguments[2];
        var context = new DefaultCamelContext();
        context.addRoutes(new RouteBuilder() {
            String at(String service) {
                return "netty-http:http://127.0.0.1:" + port + "/services/" + service + "?chunkedMaxContentLength=67108864";
            }

            String to(String service) {
                return "netty-http:http://" + backend + "/services/" + service
                    + "?bridgeEndpoint=true&throwExceptionOnFailure=false&keepAlive=true&chunkedMaxContentLength=67108864";
            }

            /** What is not for us gets a status, as the fault sequence of the round gives one. */
            void refuse(ChoiceDefinition choice) {
                choice.otherwise().setBody(constant("")).setHeader("CamelHttpResponseCode", constant(500));
            }

            @Override
            public void configure() {
                var names = new Namespaces("s", SOAP).add("m", "http://services.samples/xsd").add("q", "http://services.samples").add("r", "http://someuri");
                from(at("DirectProxy")).to(to("EchoService"));
                from(at("MessageRelayProxy")).to(to("EchoService"));
                from(at("AppendProxy")).to(to("AppendService"));
                refuse(from(at("CBRTransportHeaderProxy")).choice()
                    .when(header("routing").isEqualTo(ROUTE)).to(to("EchoService")));
                refuse(from(at("CBRProxy")).convertBodyTo(byte[].class).choice()
                    .when(xpath("/s:Envelope/s:Body/m:buyStocks/order[1]/symbol = 'IBM'", Boolean.class, names)).to(to("EchoService")));
                refuse(from(at("CBRSOAPHeaderProxy")).convertBodyTo(byte[].class).choice()
                    .when(xpath("/s:Envelope/s:Header/r:routing = '" + ROUTE + "'", Boolean.class, names)).to(to("EchoService")));
                from(at("XSLTProxy")).convertBodyTo(byte[].class)
                    .to("xslt:file:" + folder + "/reversed-to-order.xsl?output=bytes")
                    .to(to("OrderService")).convertBodyTo(byte[].class)
                    .to("xslt:file:" + folder + "/order-to-reversed.xsl?output=bytes");
                from(at("SplitAggregateProxy")).convertBodyTo(byte[].class)
                    .split(xpath("//q:getQuotes/q:getQuote", NodeList.class, names), new Payloads("<m:getQuotesResponse xmlns:m=\"http://services.samples\">", "</m:getQuotesResponse>"))
                    .parallelProcessing()
                        .process(exchange -> exchange.getMessage().setBody(envelope(text(exchange.getMessage().getBody(Node.class)))))
                        .setHeader("SOAPAction", constant("\"urn:getQuote\""))
                        .to(to("SimpleStockQuoteService"))
                    .end()
                    .process(Round::together);
                from("netty-http:http://127.0.0.1:" + port + "/direct?chunkedMaxContentLength=67108864").to(to("EchoService"));
                from(at("EnrichBackAndForthProxy")).convertBodyTo(byte[].class)
                    .process(Round::keepAside).to(to("EchoService")).process(Round::putBack);
                for (int count : new int[] { 20, 50, 100 }) {
                    from(at("PayloadFactory" + count + "Proxy")).convertBodyTo(byte[].class)
                        .process(exchange -> report(exchange, count)).to(to("EchoService"));
                }
                for (int count : new int[] { 2, 4, 8 }) {
                    var copies = from(at("CloneAggregate" + count + "Proxy")).convertBodyTo(byte[].class)
                        .multicast(new Payloads("<r:answers xmlns:r=\"urn:busbar:round\">", "</r:answers>")).parallelProcessing();
                    for (int copy = 0; copy < count; copy++) {
                        copies.to(to("EchoService"));
                    }
                    copies.end().process(Round::together);
                }
            }
        });
        context.start();
        Thread.currentThread().join();
    }

    /** Puts the payloads of answers into one element, and that into an envelope at the end. */
    record Payloads(String begin, String end) implements AggregationStrategy {
        @Override
        public Exchange aggregate(Exchange all, Exchange one) {
            var document = one.getMessage().getBody(Document.class);
            String payload = text(document.getElementsByTagNameNS(SOAP, "Body").item(0).getFirstChild());
            if (all == null) {
                one.setProperty("end", end);
                one.getMessage().setBody(new StringBuilder(begin).append(payload));
                return one;
            }
            all.getMessage().getBody(StringBuilder.class).append(payload);
            return all;
        }
    }

    static void together(Exchange exchange) {
        become(exchange, envelope(exchange.getMessage().getBody(StringBuilder.class) + exchange.getProperty("end", String.class)));
    }

    /** The order message is a property, and its first order the payload that goes out. */
    static void keepAside(Exchange exchange) {
        var message = exchange.getMessage().getBody(Document.class);
        exchange.setProperty("message", message);
        become(exchange, envelope(text(message.getElementsByTagName("order").item(0))));
    }

    /** The order that came back is the last one of the message that was kept. */
    static void putBack(Exchange exchange) {
        var message = exchange.getProperty("message", Document.class);
        var order = exchange.getMessage().getBody(Document.class).getElementsByTagName("order").item(0);
        message.getElementsByTagNameNS("http://services.samples/xsd", "buyStocks").item(0).appendChild(message.importNode(order, true));
        become(exchange, text(message));
    }

    /** A payload of so many elements: the fields of the first order, then those of the second, and so on. */
    static void report(Exchange exchange, int count) {
        var orders = exchange.getMessage().getBody(Document.class).getElementsByTagName("order");
        String[] names = { "symbol", "buyerID", "price", "volume" };
        var report = new StringBuilder("<r:report xmlns:r=\"urn:busbar:round\">");
        for (int n = 0; n < count; n++) {
            var order = (Element) orders.item(n / names.length);
            String value = order == null ? "" : order.getElementsByTagName(names[n % names.length]).item(0).getTextContent();
            report.append("<r:value no=\"").append(n + 1).append("\">").append(value.replace("&", "&amp;").replace("<", "&lt;")).append("</r:value>");
        }
        become(exchange, envelope(report.append("</r:report>").toString()));
    }

    static void become(Exchange exchange, String body) {
        exchange.getMessage().setBody(body);
        exchange.getMessage().removeHeader("Content-Length");
        exchange.getMessage().setHeader("Content-Type", "text/xml; charset=UTF-8");
    }

    static String envelope(String payload) {
        return "<soapenv:Envelope xmlns:soapenv=\"" + SOAP + "\"><soapenv:Body>" + payload + "</soapenv:Body></soapenv:Envelope>";
    }

    static String text(Node node) {
        try {
            var transformer = TransformerFactory.newInstance().newTransformer();
            transformer.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
            var text = new StringWriter();
            transformer.transform(new DOMSource(node), new StreamResult(text));
            return text.toString();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
