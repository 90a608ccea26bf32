/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/wire/frame.h"

#define STREAMS 3

bool step_next(const uint8_t **data, size_t *size, struct step *ret_step)
{
    if (*size < 3)
        return false;
    size_t length = (size_t)(*data)[1] << 8 | (*data)[2];
    length = length < *size - 3 ? length : *size - 3;
    *ret_step = (struct step){.what = (*data)[0], .bytes = *data + 3, .length = length};
    *data += 3 + length;
    *size -= 3 + length;
    return true;
}

/* ---- connections ---- */

int peer_open(struct peer *peer)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    peer->fd = pair[0];
    return pair[1];
}

void peer_close(struct peer *peer)
{
    close_fd(&peer->fd);
}

/* What does not fit into the socket is lost: the program under test has stopped reading. */
void peer_send_raw(struct peer *peer, const void *bytes, size_t length)
{
    if (peer->fd >= 0 && length > 0 &&
        send(peer->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length)
        peer_close(peer);
}

void peer_send(struct peer *peer, const void *body, size_t length)
{
    const uint8_t header[FRAME_HEADER] = {(uint8_t)(length >> 24), (uint8_t)(length >> 16),
                                          (uint8_t)(length >> 8), (uint8_t)length};
    peer_send_raw(peer, header, sizeof header);
    peer_send_raw(peer, body, length);
}

void peer_send_message(struct peer *peer, const Drarun__Wire__Envelope *message)
{
    size_t length = drarun__wire__envelope__get_packed_size(message);
    cleanup_free uint8_t *body = malloc(length + 1);
    if (!body)
        abort();
    peer_send(peer, body, drarun__wire__envelope__pack(message, body));
}

static size_t check_frames(const char *data, size_t length)
{
    size_t at = 0;
    while (length - at >= FRAME_HEADER) {
        const uint8_t *header = (const uint8_t *)data + at;
        Drarun__Wire__Envelope *message = NULL;
        uint32_t body = 0;
        if (frame_body_length(header, &body, NULL) < 0)
            abort();
        if (length - at - FRAME_HEADER < body)
            break;
        if (frame_decode(header + FRAME_HEADER, body, &message, NULL) < 0)
            abort();
        drarun__wire__envelope__free_unpacked(message, NULL);
        at += FRAME_HEADER + body;
    }
    return at;
}

/* A frame that comes in pieces over several calls is not looked at: none is that large. */
void peer_read(struct peer *peer)
{
    struct buf in = BUF_INIT;
    char chunk[16384];
    ssize_t n;
    while (peer->fd >= 0 && (n = recv(peer->fd, chunk, sizeof chunk, MSG_DONTWAIT)) > 0) {
        buf_add(&in, chunk, (size_t)n);
        buf_consume(&in, check_frames(in.data, in.len));
    }
    buf_done(&in);
}

/* ---- standard streams ---- */

/* Where the sanitizers write; there in their builds alone. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static int kept[STREAMS] = {-1, -1, -1};

void peer_streams_divert(const void *input, size_t length)
{
    static int diverted[STREAMS] = {-1, -1, -1};
    if (diverted[0] < 0) {
        diverted[0] = memfd_create("input", MFD_CLOEXEC);
        diverted[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
        diverted[2] = open("/dev/zero", O_WRONLY | O_CLOEXEC); /* another file than the other */
        for (int i = 0; i < STREAMS; i++) {
            kept[i] = fcntl(i, F_DUPFD_CLOEXEC, STREAMS);
            if (diverted[i] < 0 || kept[i] < 0)
                abort();
        }
        if (__sanitizer_set_report_fd)
            __sanitizer_set_report_fd((void *)(intptr_t)kept[STDERR_FILENO]);
    }
    if (ftruncate(diverted[0], 0) < 0 || pwrite(diverted[0], input, length, 0) != (ssize_t)length ||
        lseek(diverted[0], 0, SEEK_SET) < 0)
        abort();
    for (int i = 0; i < STREAMS; i++)
        if (dup2(diverted[i], i) < 0)
            abort();
}

void peer_streams_restore(void)
{
    for (int i = 0; i < STREAMS; i++)
        dup2(kept[i], i);
}

/* ---- files ---- */

static char folder[64];

static void remove_folder(void)
{
    tree_remove(AT_FDCWD, folder);
}

const char *peer_folder(void)
{
    if (folder[0])
        return folder;
    snprintf(folder, sizeof folder, "/tmp/drarun-fuzz.XXXXXX");
    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    return folder;
}
