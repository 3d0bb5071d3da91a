import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.ErrorListener;
import javax.xml.transform.Templates;
import javax.xml.transform.Transformer;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import net.sf.saxon.s9api.DocumentBuilder;
import net.sf.saxon.s9api.Processor;
import net.sf.saxon.s9api.Serializer;
import net.sf.saxon.s9api.XPathCompiler;
import net.sf.saxon.s9api.XPathExecutable;
import net.sf.saxon.s9api.XPathSelector;
import net.sf.saxon.s9api.XdmNode;
import net.sf.saxon.s9api.XsltCompiler;
import net.sf.saxon.s9api.XsltExecutable;
import net.sf.saxon.s9api.XsltTransformer;

/** Saxon-HE or Xalan as a peer of bench/engines/run.py; the commands are those of libxslt.c. The argument says which. */
public final class Peer {
    interface Engine {
        void load(String sheet, File input) throws Exception;

        void xpath(String expression, File input) throws Exception;

        void phase(String name) throws Exception;

        byte[] whole() throws Exception;
    }

    static final class Saxon implements Engine {
        final Processor processor = new Processor(false);
        XsltExecutable sheet;
        XPathSelector selector;
        DocumentBuilder builder;
        byte[] bytes;
        String uri;
        XdmNode doc;

        public void load(String file, File input) throws Exception {
            XsltCompiler compiler = processor.newXsltCompiler();
            compiler.setErrorReporter(error -> {});
            sheet = compiler.compile(new StreamSource(new File(file)));
            builder = processor.newDocumentBuilder();
            builder.setWhitespaceStrippingPolicy(sheet.getWhitespaceStrippingPolicy());
            read(input);
        }

        public void xpath(String expression, File input) throws Exception {
            XPathCompiler compiler = processor.newXPathCompiler();
            compiler.setLanguageVersion("3.1");
            compiler.declareNamespace("s", "http://schemas.xmlsoap.org/soap/envelope/");
            compiler.declareNamespace("m", "http://services.samples/xsd");
            XPathExecutable compiled = compiler.compile(expression);
            builder = processor.newDocumentBuilder();
            read(input);
            selector = compiled.load();
            selector.setContextItem(doc);
        }

        void read(File input) throws Exception {
            bytes = Files.readAllBytes(input.toPath());
            uri = input.toURI().toString();
            doc = parse();
        }

        XdmNode parse() throws Exception {
            return builder.build(new StreamSource(new ByteArrayInputStream(bytes), uri));
        }

        byte[] run(XdmNode from) throws Exception {
            ByteArrayOutputStream out = new ByteArrayOutputStream(bytes.length);
            XsltTransformer transformer = sheet.load();
            transformer.setErrorReporter(error -> {});
            transformer.setMessageHandler(message -> {});
            transformer.setInitialContextNode(from);
            Serializer serializer = processor.newSerializer(out);
            transformer.setDestination(serializer);
            transformer.transform();
            return out.toByteArray();
        }

        public byte[] whole() throws Exception {
            return run(parse());
        }

        public void phase(String name) throws Exception {
            switch (name) {
                case "parse" -> parse();
                case "run" -> run(doc);
                case "whole" -> whole();
                case "tree" -> selector.effectiveBooleanValue();
                default -> throw new IllegalArgumentException(name);
            }
        }
    }

    static final class Xalan implements Engine {
        Templates sheet;
        byte[] bytes;
        String uri;
        org.w3c.dom.Document doc;
        final DocumentBuilderFactory builders = DocumentBuilderFactory.newInstance();
        final ErrorListener quiet = new ErrorListener() {
            public void warning(TransformerException e) {}

            public void error(TransformerException e) {}

            public void fatalError(TransformerException e) throws TransformerException {
                throw e;
            }
        };

        public void load(String file, File input) throws Exception {
            TransformerFactory factory = new org.apache.xalan.processor.TransformerFactoryImpl();
            factory.setErrorListener(quiet);
            sheet = factory.newTemplates(new StreamSource(new File(file)));
            bytes = Files.readAllBytes(input.toPath());
            uri = input.toURI().toString();
            builders.setNamespaceAware(true);
            doc = parse();
        }

        public void xpath(String expression, File input) {
            throw new UnsupportedOperationException();
        }

        org.w3c.dom.Document parse() throws Exception {
            return builders.newDocumentBuilder().parse(new ByteArrayInputStream(bytes), uri);
        }

        byte[] run(javax.xml.transform.Source from) throws Exception {
            ByteArrayOutputStream out = new ByteArrayOutputStream(bytes.length);
            Transformer transformer = sheet.newTransformer();
            transformer.setErrorListener(quiet);
            transformer.transform(from, new StreamResult(out));
            return out.toByteArray();
        }

        public byte[] whole() throws Exception {
            return run(new StreamSource(new ByteArrayInputStream(bytes), uri));
        }

        public void phase(String name) throws Exception {
            switch (name) {
                case "parse" -> parse();
                case "run" -> run(new DOMSource(doc, uri));
                case "whole" -> whole();
                default -> throw new IllegalArgumentException(name);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Engine engine = args[0].equals("saxon") ? new Saxon() : new Xalan();
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] field = line.split("\t", -1);
            String answer = "ok";
            try {
                switch (field[0]) {
                    case "load" -> engine.load(field[1], new File(field[2]));
                    case "xpath" -> engine.xpath(field[1], new File(field[2]));
                    case "write" -> Files.write(Path.of(field[1]), engine.whole());
                    case "time" -> {
                        long least = Long.parseLong(field[2]) * 1_000_000;
                        long began = threads.getCurrentThreadCpuTime();
                        long spent;
                        long calls = 0;
                        long batch = 1;
                        do {
                            for (long i = 0; i < batch; i++) {
                                engine.phase(field[1]);
                            }
                            calls += batch;
                            spent = threads.getCurrentThreadCpuTime() - began;
                            if (spent < least / 8) {
                                batch *= 2;
                            }
                        } while (spent < least);
                        answer = "ok " + (double) spent / calls + " " + calls;
                    }
                    default -> answer = "failed: unknown command";
                }
            } catch (Exception | StackOverflowError e) {
                answer = "failed: " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }
}
