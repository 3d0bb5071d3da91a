import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TimeZone;
import javax.tools.ToolProvider;

/**
 * Evaluates each line of code.txt, which is Java and JavaScript alike, and writes it with its value to expected.txt:
 * {@code java Expected.java}, in this directory, with Java 17. The last expression of a line counts; an exception is its class.
 */
public class Expected {
    public static void main(String[] arguments) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of("code.txt"))) {
            if (!line.isBlank() && !line.startsWith("#")) lines.add(line.strip());
        }
        StringBuilder source = new StringBuilder("@SuppressWarnings(\"all\") public class Lines {\n");
        for (int at = 0; at < lines.size(); at++) {
            String line = lines.get(at);
            int last = line.lastIndexOf("; ");
            String statements = last < 0 ? "" : line.substring(0, last + 1).replaceAll("; var ([a-z])", "; var $1");
            source.append("static Object line").append(at).append("() throws Exception { ").append(statements).append(" return ")
                .append(line.substring(last < 0 ? 0 : last + 2)).append("; }\n");
        }
        Path directory = Files.createTempDirectory("lines");
        Path file = directory.resolve("Lines.java");
        Files.writeString(file, source.append("}\n"));
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, "-nowarn", "-Xlint:none", file.toString()) != 0) System.exit(1);
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        Locale.setDefault(Locale.US);
        Class<?> made = new java.net.URLClassLoader(new java.net.URL[] {directory.toUri().toURL()}).loadClass("Lines");
        StringBuilder out = new StringBuilder("# Written by Expected.java from code.txt.\n");
        for (int at = 0; at < lines.size(); at++) {
            String value;
            try {
                var method = made.getDeclaredMethod("line" + at);
                method.setAccessible(true);
                value = String.valueOf(method.invoke(null));
            } catch (java.lang.reflect.InvocationTargetException thrown) {
                value = "! " + thrown.getCause().getClass().getName();
            }
            value = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t");
            out.append(lines.get(at)).append('\t').append(value).append('\n');
        }
        Files.writeString(Path.of("expected.txt"), out);
    }
}
