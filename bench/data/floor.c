// What the kernel takes for a data service: system calls with epoll, and nothing else.
//
// Each request becomes one prepared query on a connection to PostgreSQL, and its rows become one answer that was made before. Neither side is understood:
// what one read gives is a request, and rows are whole when the last message is `ReadyForQuery` (`Z`). bench/data.py runs it.
//
// floor PORT DATABASE_PORT CONNECTIONS

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536, POOL = 64 };

static const char SQL[] = "SELECT id, name, price, stock FROM items WHERE id > $1 ORDER BY id LIMIT 10";

static char query[128], answer[4096];
static int query_length, answer_length;

// The clients of connections to the database, those that wait for one, and the connections that are free.
static int client_of[DESCRIPTORS];
static int waiting[DESCRIPTORS];
static unsigned first_waiting, behind_waiting;
static int idle[POOL], idle_count;
static char is_database[DESCRIPTORS];

static void fail(const char *call) {
    perror(call);
    exit(1);
}

// --- messages of PostgreSQL ------------------------------------------------------------------------------------------

static int put16(char *to, int value) {
    uint16_t bytes = htons((uint16_t)value);
    memcpy(to, &bytes, 2);
    return 2;
}

static int put32(char *to, int value) {
    uint32_t bytes = htonl((uint32_t)value);
    memcpy(to, &bytes, 4);
    return 4;
}

static int put_text(char *to, const char *text) {
    return sprintf(to, "%s", text) + 1;
}

static void until_ready(int database) {
    char buffer[65536];
    for (;;) {
        ssize_t length = read(database, buffer, sizeof buffer);
        if (length <= 0) fail("the database");
        if (length >= 6 && buffer[length - 6] == 'Z') return;
    }
}

// A connection that has logged in, with the statement `s` prepared.
static int database(int port) {
    int database = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(database, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(database, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);

    char text[512];
    int length = 4;
    length += put32(text + length, 3 << 16);
    length += put_text(text + length, "user");
    length += put_text(text + length, "bus");
    length += put_text(text + length, "database");
    length += put_text(text + length, "bus");
    text[length++] = 0;
    put32(text, length);
    if (write(database, text, (size_t)length) < 0) fail("write");
    until_ready(database);

    text[0] = 'P';
    length = 5;
    length += put_text(text + length, "s");
    length += put_text(text + length, SQL);
    length += put16(text + length, 1);
    length += put32(text + length, 23); // int4
    put32(text + 1, length - 1);
    text[length++] = 'S';
    length += put32(text + length, 4);
    if (write(database, text, (size_t)length) < 0) fail("write");
    until_ready(database);
    return database;
}

// Bind with 400 and results in binary, Execute, Sync.
static void make_query(void) {
    char *to = query;
    int length = 5;
    to[0] = 'B';
    to[length++] = 0;
    length += put_text(to + length, "s");
    length += put16(to + length, 1);
    length += put16(to + length, 1);
    length += put16(to + length, 1);
    length += put32(to + length, 4);
    length += put32(to + length, 400);
    length += put16(to + length, 1);
    length += put16(to + length, 1);
    put32(to + 1, length - 1);
    to[length++] = 'E';
    length += put32(to + length, 9);
    to[length++] = 0;
    length += put32(to + length, 0);
    to[length++] = 'S';
    length += put32(to + length, 4);
    query_length = length;
}

static void make_answer(void) {
    char body[2048];
    int length = 0;
    for (int id = 401; id <= 410; id++)
        length += sprintf(body + length, "<item><id>%d</id><name>item number %d</name><price>%d.25</price><stock>1</stock></item>", id, id, id + 99);
    answer_length = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Type: application/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n%s", length, body);
}

// --- requests --------------------------------------------------------------------------------------------------------

static void ask(int database, int client) {
    client_of[database] = client;
    send(database, query, (size_t)query_length, MSG_NOSIGNAL);
}

static void request_came(int client) {
    if (idle_count)
        ask(idle[--idle_count], client);
    else
        waiting[behind_waiting++ % DESCRIPTORS] = client;
}

static void rows_came(int database) {
    send(client_of[database], answer, (size_t)answer_length, MSG_NOSIGNAL);
    if (first_waiting != behind_waiting)
        ask(database, waiting[first_waiting++ % DESCRIPTORS]);
    else
        idle[idle_count++] = database;
}

int main(int count, char **arguments) {
    if (count != 4 || atoi(arguments[3]) > POOL) {
        fprintf(stderr, "floor PORT DATABASE_PORT CONNECTIONS (at most %d)\n", POOL);
        return 2;
    }
    make_query();
    make_answer();
    int events = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 512)) fail("bind");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(events, EPOLL_CTL_ADD, listener, &event);
    event.events = EPOLLIN | EPOLLET;
    for (int i = 0; i < atoi(arguments[3]); i++) {
        int connection = event.data.fd = database(atoi(arguments[2]));
        fcntl(connection, F_SETFL, O_NONBLOCK);
        is_database[connection] = 1;
        idle[idle_count++] = connection;
        epoll_ctl(events, EPOLL_CTL_ADD, connection, &event);
    }

    char buffer[65536];
    for (;;) {
        struct epoll_event ready[128];
        int amount = epoll_wait(events, ready, 128, -1);
        for (int i = 0; i < amount; i++) {
            int socket = ready[i].data.fd;
            if (socket == listener) {
                int client = event.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (client < 0) continue;
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(events, EPOLL_CTL_ADD, client, &event);
                continue;
            }
            ssize_t length = recv(socket, buffer, sizeof buffer, 0);
            if (is_database[socket]) {
                if (length < 6) fail("the database");
                if (buffer[length - 6] == 'Z') rows_came(socket);
            } else if (length > 0) {
                request_came(socket);
            } else {
                close(socket);
            }
        }
    }
}
