// A data service in plain Java: Jetty, HikariCP, the JDBC driver of PostgreSQL, StAX. `DataPeer PORT URL CONNECTIONS`.
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import javax.xml.stream.XMLOutputFactory;
import javax.xml.stream.XMLStreamWriter;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.AbstractHandler;

public class DataPeer extends AbstractHandler {
    static final String NAMESPACE = "http://shop.example/items";
    final HikariDataSource source;
    final XMLOutputFactory factory = XMLOutputFactory.newInstance();

    DataPeer(HikariDataSource source) {
        this.source = source;
    }

    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(arguments[1]);
        config.setUsername("bus");
        config.setPassword("secret");
        config.setMaximumPoolSize(Integer.parseInt(arguments[2]));
        Server server = new Server(Integer.parseInt(arguments[0]));
        server.setHandler(new DataPeer(new HikariDataSource(config)));
        server.start();
        server.join();
    }

    @Override
    public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response) {
        base.setHandled(true);
        try (Connection connection = source.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement("SELECT id, name, price, stock FROM items WHERE id > ? ORDER BY id LIMIT 10")) {
            statement.setInt(1, Integer.parseInt(target.substring(target.lastIndexOf('/') + 1)));
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(2048);
            XMLStreamWriter out = factory.createXMLStreamWriter(bytes, "UTF-8");
            out.writeStartElement("items");
            out.writeDefaultNamespace(NAMESPACE);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    out.writeStartElement("item");
                    field(out, "id", Integer.toString(rows.getInt(1)));
                    field(out, "name", rows.getString(2));
                    field(out, "price", rows.getBigDecimal(3).toPlainString());
                    field(out, "stock", Integer.toString(rows.getInt(4)));
                    out.writeEndElement();
                }
            }
            out.writeEndElement();
            out.close();
            response.setContentType("application/xml; charset=UTF-8");
            response.getOutputStream().write(bytes.toByteArray());
        } catch (Exception error) {
            response.setStatus(500);
        }
    }

    static void field(XMLStreamWriter out, String name, String value) throws Exception {
        out.writeStartElement(name);
        out.writeCharacters(value);
        out.writeEndElement();
    }
}
