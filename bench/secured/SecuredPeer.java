// The secure proxy of the round in plain Java: Jetty with TLS, WSS4J, and a connection to the backend. `SecuredPeer PORT BACKEND KEYS`.
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.xml.namespace.QName;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.apache.wss4j.common.WSEncryptionPart;
import org.apache.wss4j.common.crypto.Crypto;
import org.apache.wss4j.common.crypto.CryptoFactory;
import org.apache.wss4j.common.ext.WSPasswordCallback;
import org.apache.wss4j.common.util.KeyUtils;
import org.apache.wss4j.dom.WSConstants;
import org.apache.wss4j.dom.WSDataRef;
import org.apache.wss4j.dom.engine.WSSConfig;
import org.apache.wss4j.dom.engine.WSSecurityEngine;
import org.apache.wss4j.dom.engine.WSSecurityEngineResult;
import org.apache.wss4j.dom.handler.RequestData;
import org.apache.wss4j.dom.handler.WSHandlerResult;
import org.apache.wss4j.dom.message.WSSecEncrypt;
import org.apache.wss4j.dom.message.WSSecHeader;
import org.apache.wss4j.dom.message.WSSecSignature;
import org.apache.wss4j.dom.message.WSSecSignatureConfirmation;
import org.apache.wss4j.dom.message.WSSecTimestamp;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

public class SecuredPeer extends AbstractHandler {
    static final String SOAP = "http://schemas.xmlsoap.org/soap/envelope/";
    final String backend;
    final Crypto crypto;
    final WSSecurityEngine engine = new WSSecurityEngine();
    final ThreadLocal<DocumentBuilderFactory> parsers = ThreadLocal.withInitial(() -> {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        try {
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        return factory;
    });
    final ThreadLocal<Transformer> writers = ThreadLocal.withInitial(() -> {
        try {
            Transformer writer = TransformerFactory.newInstance().newTransformer();
            writer.setOutputProperty("omit-xml-declaration", "yes");
            return writer;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    });

    SecuredPeer(String backend, String keys) throws Exception {
        this.backend = backend;
        WSSConfig.init();
        Properties of = new Properties();
        String prefix = "org.apache.wss4j.crypto.";
        of.put(prefix + "provider", "org.apache.wss4j.common.crypto.Merlin");
        of.put(prefix + "merlin.keystore.type", "PKCS12");
        of.put(prefix + "merlin.keystore.password", "secret");
        of.put(prefix + "merlin.keystore.file", keys + "/bus.p12");
        of.put(prefix + "merlin.truststore.type", "PKCS12");
        of.put(prefix + "merlin.truststore.password", "secret");
        of.put(prefix + "merlin.truststore.file", keys + "/trust.p12");
        crypto = CryptoFactory.getInstance(of);
    }

    public static void main(String[] arguments) throws Exception {
        Server server = new Server();
        SslContextFactory.Server tls = new SslContextFactory.Server();
        tls.setKeyStorePath(arguments[2] + "/tls.p12");
        tls.setKeyStorePassword("secret");
        HttpConfiguration http = new HttpConfiguration();
        http.addCustomizer(new SecureRequestCustomizer(false));
        ServerConnector connector = new ServerConnector(server, new SslConnectionFactory(tls, HttpVersion.HTTP_1_1.asString()), new HttpConnectionFactory(http));
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[0]));
        server.addConnector(connector);
        server.setHandler(new SecuredPeer("http://" + arguments[1] + "/services/OrderService", arguments[2]));
        server.start();
        server.join();
    }

    @Override
    public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response) {
        base.setHandled(true);
        try {
            Document document = read(request.getInputStream().readAllBytes());
            WSHandlerResult came = open(document);
            document = read(ask(write(document), request.getHeader("SOAPAction")));
            secure(document, came);
            byte[] answer = write(document);
            response.setContentType("text/xml; charset=UTF-8");
            response.setContentLength(answer.length);
            response.getOutputStream().write(answer);
        } catch (Exception error) {
            error.printStackTrace();
            response.setStatus(500);
        }
    }

    Document read(byte[] bytes) throws Exception {
        return parsers.get().newDocumentBuilder().parse(new ByteArrayInputStream(bytes));
    }

    byte[] write(Document document) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream(4096);
        writers.get().transform(new DOMSource(document), new StreamResult(out));
        return out.toByteArray();
    }

    byte[] ask(byte[] message, String action) throws Exception {
        HttpURLConnection connection = (HttpURLConnection) URI.create(backend).toURL().openConnection();
        connection.setRequestMethod("POST");
        connection.setDoOutput(true);
        connection.setFixedLengthStreamingMode(message.length);
        connection.setRequestProperty("Content-Type", "text/xml; charset=UTF-8");
        connection.setRequestProperty("SOAPAction", action);
        connection.getOutputStream().write(message);
        return connection.getInputStream().readAllBytes();
    }

    /** Decrypts and verifies a request; timestamp and body have to be signed, the body encrypted; the header is taken out. */
    WSHandlerResult open(Document document) throws Exception {
        RequestData data = new RequestData();
        data.setSigVerCrypto(crypto);
        data.setDecCrypto(crypto);
        data.setWssConfig(engine.getWssConfig());
        data.setCallbackHandler(callbacks -> {
            for (Callback callback : callbacks) {
                ((WSPasswordCallback) callback).setPassword("secret");
            }
        });
        WSHandlerResult result = engine.processSecurityHeader(document, data);
        Set<QName> signed = new HashSet<>(), encrypted = new HashSet<>();
        for (WSSecurityEngineResult part : result.getResults()) {
            int action = (Integer) part.get(WSSecurityEngineResult.TAG_ACTION);
            if (part.get(WSSecurityEngineResult.TAG_DATA_REF_URIS) instanceof List<?> references) {
                for (Object reference : references) {
                    (action == WSConstants.SIGN ? signed : encrypted).add(((WSDataRef) reference).getName());
                }
            }
        }
        QName body = new QName(SOAP, "Body"), timestamp = new QName(WSConstants.WSU_NS, "Timestamp");
        if (!signed.contains(body) || !signed.contains(timestamp) || !encrypted.contains(body)) {
            throw new SecurityException("not signed and encrypted: " + signed + encrypted);
        }
        Element envelope = document.getDocumentElement();
        for (Node child = envelope.getFirstChild(); child != null; child = child.getNextSibling()) {
            if ("Header".equals(child.getLocalName())) {
                envelope.removeChild(child);
                break;
            }
        }
        return result;
    }

    /** Timestamp, the request's signature confirmed, signature, encryption for whoever signed the request. */
    void secure(Document document, WSHandlerResult came) throws Exception {
        WSSecHeader header = new WSSecHeader(document);
        header.insertSecurityHeader();
        WSSecTimestamp timestamp = new WSSecTimestamp(header);
        timestamp.setTimeToLive(300);
        timestamp.build();
        WSSecurityEngineResult of = came.getActionResults().get(WSConstants.SIGN).get(0);
        WSSecSignatureConfirmation confirmation = new WSSecSignatureConfirmation(header);
        confirmation.build((byte[]) of.get(WSSecurityEngineResult.TAG_SIGNATURE_VALUE));
        WSSecSignature signature = new WSSecSignature(header);
        signature.setUserInfo("bus", "secret");
        signature.setKeyIdentifierType(WSConstants.THUMBPRINT_IDENTIFIER);
        signature.setSignatureAlgorithm(WSConstants.RSA_SHA256);
        signature.setDigestAlgo(WSConstants.SHA256);
        signature.getParts().add(new WSEncryptionPart("Timestamp", WSConstants.WSU_NS, ""));
        signature.getParts().add(new WSEncryptionPart("SignatureConfirmation", WSConstants.WSSE11_NS, "Element"));
        signature.getParts().add(new WSEncryptionPart("Body", SOAP, "Content"));
        signature.build(crypto);
        WSSecEncrypt encryption = new WSSecEncrypt(header);
        encryption.setUseThisCert((java.security.cert.X509Certificate) of.get(WSSecurityEngineResult.TAG_X509_CERTIFICATE));
        encryption.setKeyIdentifierType(WSConstants.THUMBPRINT_IDENTIFIER);
        encryption.setSymmetricEncAlgorithm(WSConstants.AES_256);
        encryption.setKeyEncAlgo(WSConstants.KEYTRANSPORT_RSAOAEP);
        encryption.getParts().add(new WSEncryptionPart("Body", SOAP, "Content"));
        encryption.build(crypto, KeyUtils.getKeyGenerator(WSConstants.AES_256).generateKey());
    }
}
