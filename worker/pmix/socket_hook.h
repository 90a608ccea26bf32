/* SPDX-License-Identifier: Apache-2.0 */
/* libpmix makes its own listening socket inside PMIx_server_init and accepts on it at once. We need
 * the socket earlier, to start the library only when a rank connects, and the first rank must wait
 * until the job is registered. So the program's bind(2) puts our socket in the place of the
 * library's, and its accept(2) finds nobody there until the gate is opened.
 *
 * Only processes of our own user get in. The library compares a user that the client itself writes,
 * reads its handshake without a deadline and crashes on some that are refused, so accept(2) asks
 * the kernel first, and recv(2) ends a handshake that stands still.
 *
 * The program's send(2) never fails because the peer is gone. libpmix 5.0.7 sends with it in the
 * handshake alone, and where that fails it releases the rank's record twice, which stays on its
 * list: the next rank that connects crashes the server (connection handler, openpmix issue 3584). A
 * rank that dies in its handshake is thus taken for one that dies right after.
 *
 * Its read(2) tells libpmix of one lost connection at a time. Where ranks of a fence within one
 * node are lost in the same pass of the library's loop, lost_connection (ptl_base_sendrecv.c, 5.0.7
 * and 5.0.11) completes the fence once for each of them, and the second time its record is freed.
 * Read again in the next pass, the second finds the fence gone. */
#ifndef DRARUN_WORKER_PMIX_SOCKET_HOOK_H
#define DRARUN_WORKER_PMIX_SOCKET_HOOK_H

#include <stdbool.h>

/* The next bind of a TCP socket to the loopback address, on any thread, becomes this listening
 * socket (it is duplicated onto the caller's descriptor); its gate is closed. */
void socket_hook_arm(int listener);
/* True when it was used; disarms in any case. */
bool socket_hook_disarm(void);
/* Before the library is started: whether a process of our user waits to connect. Its connection is
 * kept for the library; those of others are closed. listener is non-blocking. */
bool socket_hook_admit(int listener);
/* From now on connections are accepted. */
void socket_hook_open_gate(void);

#endif
