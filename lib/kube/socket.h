/* SPDX-License-Identifier: Apache-2.0 */
/* A command in a pod, or a connection to one of its ports: a WebSocket with Kubernetes' channels,
 * each message's first byte (subprotocols v4 and v5.channel.k8s.io;
 * k8s.io/kubelet/pkg/cri/streaming/remotecommand and portforward). What is under way when it breaks
 * is lost: only the owner knows whether it may begin again. */
#ifndef DRARUN_KUBE_SOCKET_H
#define DRARUN_KUBE_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"
#include "lib/base/strlist.h"
#include "lib/kube/client.h"

struct kube_socket;

enum kube_channel {
    KUBE_CHANNEL_STDIN = 0,
    KUBE_CHANNEL_STDOUT = 1,
    KUBE_CHANNEL_STDERR = 2,
    KUBE_CHANNEL_STATUS = 3, /* a Status object: how the command ended */
    KUBE_CHANNEL_RESIZE = 4, /* {"Width":80,"Height":24} */
};

/* Of one port: its bytes, both ways, and words in place of them when there is no connection. The
 * first message of each is the port, two bytes, the low one first. */
enum kube_forward_channel {
    KUBE_FORWARD_DATA = 0,
    KUBE_FORWARD_ERROR = 1,
};

struct kube_socket_events { /* borrowed as long as the socket */
    void (*opened)(void *arg);
    void (*data)(unsigned channel, const char *bytes, size_t length, void *arg);
    /* What was to be sent has left; may be NULL. */
    void (*drained)(void *arg);
    /* err NULL: the server closed it in order. Called once; the socket is gone when it returns. */
    void (*ended)(const struct drarun_error *err, void *arg);
};

struct kube_exec { /* borrowed for the call */
    const char *namespace_, *pod, *container;
    const struct strlist *command;
    bool stdin_, tty; /* tty: one channel for both outputs */
};

struct kube_forward { /* borrowed for the call */
    const char *namespace_, *pod;
    uint16_t port; /* as a program in the pod would dial it, on the loopback */
};

int kube_exec_open(struct kube_client *client, const struct kube_exec *exec,
                   const struct kube_socket_events *events, void *arg,
                   struct kube_socket **ret_socket, struct drarun_error *err);

int kube_forward_open(struct kube_client *client, const struct kube_forward *forward,
                      const struct kube_socket_events *events, void *arg,
                      struct kube_socket **ret_socket, struct drarun_error *err);

/* Copies. From opened() on. channel: of kube_channel, or kube_forward_channel. */
int kube_socket_send(struct kube_socket *socket, unsigned channel, const void *bytes,
                     size_t length);
/* No more will be sent on it. A server that knows v4 alone cannot be told: -ENOTSUP. */
int kube_socket_close_channel(struct kube_socket *socket, enum kube_channel channel);
/* From opened() on: holds the bytes back at the server while the owner's own reader is slow. What
 * was read in this turn of the loop still comes; the connection's end is seen once it goes on. */
void kube_socket_pause(struct kube_socket *socket, bool pause);
/* No callback afterwards. NULL is fine. */
void kube_socket_free(struct kube_socket *socket);
DEFINE_CLEANUP(struct kube_socket, kube_socket_free)

#endif
