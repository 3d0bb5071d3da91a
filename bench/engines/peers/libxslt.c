/* libxslt and libxml2 as a peer of bench/engines/run.py: reads commands, one a line, fields between tabs, and answers
 * each with a line. The same commands are understood by Peer.java and crates/xslt/examples/engine_worker.rs.
 *
 *   load   SHEET INPUT     compiles the stylesheet, reads and parses the input
 *   xpath  EXPR INPUT      compiles the expression (prefixes s and m), reads and parses the input
 *   write  FILE            transforms once (with parsing) and writes the result
 *   time   PHASE MS        repeats the phase for so many ms of CPU time: "ok NS-PER-CALL CALLS"
 *   loop   PHASE COUNT     repeats it so many times (to be counted by callgrind)
 *
 * Phases: parse; run (transform the parsed input and serialise the result); apply (the same without serialising);
 * whole (parse and run); tree (the expression on the parsed input). */
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>
#include <libxslt/transform.h>
#include <libxslt/xslt.h>
#include <libxslt/xsltInternals.h>
#include <libxslt/xsltutils.h>
#include <libexslt/exslt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static xsltStylesheetPtr sheet;
static xmlXPathCompExprPtr expression;
static xmlParserCtxtPtr parser;
static xmlDocPtr doc;
static char *input, *input_file;
static long input_size;

static void quiet(void *ctx, const char *message, ...) { (void)ctx; (void)message; }

static char *slurp(const char *file, long *size) {
    FILE *f = fopen(file, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    if (fread(bytes, 1, *size, f) != (size_t)*size) *size = 0;
    bytes[*size] = 0;
    fclose(f);
    return bytes;
}

/* The parser's context and dictionary are kept from document to document: the fastest way libxml2 has. */
static xmlDocPtr parse(void) {
    return xmlCtxtReadMemory(parser, input, (int)input_size, input_file, NULL, XSLT_PARSE_OPTIONS);
}

static int transform(xmlDocPtr from, int save, xmlChar **bytes, int *size) {
    xmlDocPtr result = xsltApplyStylesheet(sheet, from, NULL);
    if (!result) return 0;
    if (save) xsltSaveResultToString(bytes, size, result, sheet);
    xmlFreeDoc(result);
    return 1;
}

static int phase(const char *name) {
    xmlChar *bytes = NULL;
    int size = 0, ok = 1;
    if (!strcmp(name, "parse")) {
        xmlDocPtr d = parse();
        ok = d != NULL;
        xmlFreeDoc(d);
    } else if (!strcmp(name, "run")) {
        ok = transform(doc, 1, &bytes, &size);
    } else if (!strcmp(name, "apply")) {
        ok = transform(doc, 0, &bytes, &size);
    } else if (!strcmp(name, "whole")) {
        xmlDocPtr d = parse();
        ok = d && transform(d, 1, &bytes, &size);
        xmlFreeDoc(d);
    } else if (!strcmp(name, "tree")) {
        static xmlXPathContextPtr context;
        static xmlDocPtr last;
        if (last != doc) {
            if (context) xmlXPathFreeContext(context);
            context = xmlXPathNewContext(doc);
            xmlXPathRegisterNs(context, BAD_CAST "s", BAD_CAST "http://schemas.xmlsoap.org/soap/envelope/");
            xmlXPathRegisterNs(context, BAD_CAST "m", BAD_CAST "http://services.samples/xsd");
            last = doc;
        }
        context->node = (xmlNodePtr)doc;
        ok = xmlXPathCompiledEvalToBoolean(expression, context) >= 0;
    } else {
        return 0;
    }
    xmlFree(bytes);
    return ok;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int load(const char *file) {
    free(input);
    free(input_file);
    if (doc) xmlFreeDoc(doc);
    input = slurp(file, &input_size);
    input_file = strdup(file);
    doc = input ? parse() : NULL;
    return doc != NULL;
}

int main(void) {
    static char line[65536];
    xmlInitParser();
    exsltRegisterAll();
    xsltSetGenericErrorFunc(NULL, quiet);
    xmlSetGenericErrorFunc(NULL, quiet);
    parser = xmlNewParserCtxt();
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *field[3] = {line, "", ""};
        for (int i = 1; i < 3; i++) {
            char *tab = strchr(field[i - 1], '\t');
            if (!tab) break;
            *tab = 0;
            field[i] = tab + 1;
        }
        int ok = 0;
        if (!strcmp(field[0], "load")) {
            if (sheet) xsltFreeStylesheet(sheet);
            sheet = xsltParseStylesheetFile(BAD_CAST field[1]);
            ok = load(field[2]) && sheet;
        } else if (!strcmp(field[0], "xpath")) {
            if (expression) xmlXPathFreeCompExpr(expression);
            expression = xmlXPathCompile(BAD_CAST field[1]);
            ok = load(field[2]) && expression;
        } else if (!strcmp(field[0], "write")) {
            xmlDocPtr d = parse();
            xmlChar *bytes = NULL;
            int size = 0;
            ok = d && transform(d, 1, &bytes, &size);
            xmlFreeDoc(d);
            FILE *f = ok ? fopen(field[1], "wb") : NULL;
            if (f) {
                fwrite(bytes, 1, size, f);
                fclose(f);
            }
            xmlFree(bytes);
        } else if (!strcmp(field[0], "time")) {
            double least = atof(field[2]) * 1e6, began = now(), spent = 0;
            long calls = 0, batch = 1;
            do {
                ok = 1;
                for (long i = 0; i < batch && ok; i++) ok = phase(field[1]);
                calls += batch;
                spent = now() - began;
                if (spent < least / 8) batch *= 2;
            } while (ok && spent < least);
            if (ok) {
                printf("ok %.1f %ld\n", spent / calls, calls);
                fflush(stdout);
                continue;
            }
        } else if (!strcmp(field[0], "loop")) {
            ok = 1;
            for (long i = atol(field[2]); i > 0 && ok; i--) ok = phase(field[1]);
        }
        puts(ok ? "ok" : "failed");
        fflush(stdout);
    }
    return 0;
}
