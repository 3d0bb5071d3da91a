// The same data service as DataPeer.java, as an Apache Camel route: camel-netty-http, camel-sql, HikariCP, StAX. `CamelPeer PORT URL CONNECTIONS`.
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamWriter;
import org.apache.camel.Exchange;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;

public class CamelPeer extends RouteBuilder {
    static final XMLOutputFactory FACTORY = XMLOutputFactory.newInstance();
    final String port;

    CamelPeer(String port) {
        this.port = port;
    }

    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(arguments[1]);
        config.setUsername("bus");
        config.setPassword("secret");
        config.setMaximumPoolSize(Integer.parseInt(arguments[2]));
        var context = new DefaultCamelContext();
        context.getRegistry().bind("shop", new HikariDataSource(config));
        context.addRoutes(new CamelPeer(arguments[0]));
        context.start();
        Thread.currentThread().join();
    }

    @Override
    public void configure() {
        from("netty-http:http://127.0.0.1:" + port + "/services/Items/page?matchOnUriPrefix=true")
            .process(exchange -> {
                String path = exchange.getMessage().getHeader(Exchange.HTTP_URI, String.class);
                exchange.getMessage().setHeader("from", Integer.parseInt(path.substring(path.lastIndexOf('/') + 1)));
            })
            .to("sql:SELECT id, name, price, stock FROM items WHERE id > :#${header.from} ORDER BY id LIMIT 10?dataSource=#shop")
            .process(CamelPeer::write);
    }

    static void write(Exchange exchange) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(2048);
        XMLStreamWriter out = FACTORY.createXMLStreamWriter(bytes, "UTF-8");
        out.writeStartElement("items");
        out.writeDefaultNamespace(DataPeer.NAMESPACE);
        for (Object row : exchange.getMessage().getBody(List.class)) {
            Map<?, ?> columns = (Map<?, ?>) row;
            out.writeStartElement("item");
            DataPeer.field(out, "id", columns.get("id").toString());
            DataPeer.field(out, "name", (String) columns.get("name"));
            DataPeer.field(out, "price", ((BigDecimal) columns.get("price")).toPlainString());
            DataPeer.field(out, "stock", columns.get("stock").toString());
            out.writeEndElement();
        }
        out.writeEndElement();
        out.close();
        exchange.getMessage().removeHeaders("*");
        exchange.getMessage().setHeader(Exchange.CONTENT_TYPE, "application/xml; charset=UTF-8");
        exchange.getMessage().setBody(bytes.toByteArray());
    }
}
