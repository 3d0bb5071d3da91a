// What the kernel takes for a relayed request: a relay that makes the system calls and does nothing else.
//
// It does not understand HTTP. Each client has a connection to the backend of its own, and what one side sends is handed to the other as it came; only the
// name of the service, which the backend has to know, is replaced in the first bytes by one of the same length. So no relay through user space
// that makes these calls can take less, and a budget below it is out of reach.
//
// relay PORT BACKEND_HOST BACKEND_PORT

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// As much as is received at once.
enum { BUFFER = 64 << 10 };

// One end of a relayed pair.
struct side {
    int socket;
    struct side *other;
    // Bytes of this side that the other one does not take yet.
    char *waiting;
    size_t from, to;
    // Whether this side may have more to read than was read.
    int readable;
    int ended;
};

static struct sockaddr_in backend;
static int events;
static char buffer[BUFFER];

static void fail(const char *call) {
    perror(call);
    exit(1);
}

// Connections that ended are kept until the process ends: a benchmark opens some thousands.
static struct side *add(int socket) {
    int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct side *side = calloc(1, sizeof *side);
    if (!side) fail("calloc");
    side->socket = socket;
    return side;
}

static void watch(struct side *side) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, .data.ptr = side};
    if (epoll_ctl(events, EPOLL_CTL_ADD, side->socket, &event)) fail("epoll_ctl");
}

static void end(struct side *side) {
    if (side->ended) return;
    side->ended = side->other->ended = 1;
    close(side->socket);
    close(side->other->socket);
}

static void name_service(char *text, ssize_t length) {
    static const char asked[] = "POST /services/DirectProxy ", served[] = "POST /services/EchoService ";
    if ((size_t)length >= sizeof asked && !memcmp(text, asked, sizeof asked - 1)) memcpy(text, served, sizeof served - 1);
}

// Hands on what waits; whether the other side took all of it.
static int flush(struct side *side) {
    while (side->from < side->to) {
        ssize_t sent = send(side->other->socket, side->waiting + side->from, side->to - side->from, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN) end(side);
            return 0;
        }
        side->from += (size_t)sent;
    }
    return 1;
}

// Moves what one side has to the other, as far as that takes it.
static void relay(struct side *side) {
    while (!side->ended && flush(side) && side->readable) {
        ssize_t length = recv(side->socket, buffer, BUFFER, 0);
        if (length <= 0) {
            if (length == 0 || errno != EAGAIN) end(side);
            side->readable = 0;
            return;
        }
        // Less than there was room for: there is no more until the next event.
        side->readable = length == BUFFER;
        name_service(buffer, length);
        ssize_t sent = send(side->other->socket, buffer, (size_t)length, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN) {
                end(side);
                return;
            }
            sent = 0;
        }
        if (sent < length) {
            if (!side->waiting && !(side->waiting = malloc(BUFFER))) fail("malloc");
            memcpy(side->waiting, buffer + sent, (size_t)(length - sent));
            side->from = 0;
            side->to = (size_t)(length - sent);
        }
    }
}

static void accept_client(int listener) {
    int socket_of_client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (socket_of_client < 0) return;
    int socket_to_backend = socket(AF_INET, SOCK_STREAM, 0);
    if (socket_to_backend < 0 || connect(socket_to_backend, (struct sockaddr *)&backend, sizeof backend)) fail("backend");
    struct side *client = add(socket_of_client), *server = add(socket_to_backend);
    if (fcntl(socket_to_backend, F_SETFL, O_NONBLOCK)) fail("fcntl");
    client->other = server;
    server->other = client;
    watch(client);
    watch(server);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "relay PORT BACKEND_HOST BACKEND_PORT\n");
        return 2;
    }
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1]))};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    backend.sin_family = AF_INET;
    backend.sin_port = htons((uint16_t)atoi(arguments[3]));
    if (inet_pton(AF_INET, arguments[2], &backend.sin_addr) != 1) fail("the address of the backend");

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 4096)) fail("bind");
    if ((events = epoll_create1(0)) < 0) fail("epoll_create1");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(events, EPOLL_CTL_ADD, listener, &event)) fail("epoll_ctl");

    for (;;) {
        struct epoll_event ready[256];
        int amount = epoll_wait(events, ready, 256, -1);
        for (int i = 0; i < amount; i++) {
            struct side *side = ready[i].data.ptr;
            if (!side) {
                accept_client(listener);
                continue;
            }
            if (ready[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) side->readable = 1;
            relay(side);
            // This side has room again for what the other one sent.
            if ((ready[i].events & EPOLLOUT) && !side->ended && side->other->from < side->other->to) relay(side->other);
        }
    }
}
