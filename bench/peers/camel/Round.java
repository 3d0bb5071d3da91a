import org.apache.camel.support.builder.Namespaces;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.camel.model.ChoiceDefinition;

/** The scenarios of the round as Camel routes: Round PORT BACKEND FOLDER, with the stylesheets in FOLDER. */
public class Round {
    static final String ROUTE = "xadmin;server1;community#1.0##";

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
                var names = new Namespaces("s", "http://schemas.xmlsoap.org/soap/envelope/")
                    .add("m", "http://services.samples/xsd").add("r", "http://someuri");
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
            }
        });
        context.start();
        Thread.currentThread().join();
    }
}
