/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of collectives from neighbours in the tree, and what ranks of this agent enter between
 * them. The input is steps: a byte that says who, a byte of length, and so many bytes: a packed
 * message of that neighbour, or the key that this agent enters, or gives up. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/rankmap.h"
#include "worker/tree/coll.h"

#define WORKERS 7u
#define RANKS 14u
#define KEY_SIZE 8
#define GIVE_UP UINT8_MAX /* who says it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rig {
    struct tree tree; /* worker 1 of 7: its parent is 0, its children are 3 and 4 */
    struct coll *coll;
    size_t entered, done, missed;
};

/* What is sent goes to a neighbour and can be packed. */
static void on_send(void *arg, uint32_t worker, const Drarun__Wire__Collective *message)
{
    const struct rig *rig = arg;
    if (worker != tree_parent(&rig->tree) && tree_child_index(&rig->tree, worker) == TREE_NONE)
        abort();
    size_t size = drarun__wire__collective__get_packed_size(message);
    uint8_t *bytes = malloc(size + 1);
    if (bytes && drarun__wire__collective__pack(message, bytes) != size)
        abort();
    free(bytes);
}

static void on_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct rig *rig = arg;
    (void)status, (void)context;
    if (length > 0 && !data)
        abort();
    rig->done++;
}

static void on_missed(void *arg, const char *key, const struct coll_range *ranges, size_t count)
{
    struct rig *rig = arg;
    if (!key || (count > 0 && !ranges))
        abort();
    rig->missed++;
}

static void act(struct rig *rig, uint32_t who, const uint8_t *bytes, size_t length)
{
    static const struct coll_range ranges[] = {{0, 4}, {8, RANKS - 8}};
    char key[KEY_SIZE + 1] = "";
    length = length < KEY_SIZE ? length : KEY_SIZE;
    memcpy(key, bytes, length);
    size_t count = length % 3; /* none: all ranks */
    if (who == GIVE_UP)
        coll_give_up(rig->coll, key, -1);
    else if (coll_enter(rig->coll, key, ranges, count, 0, "own", 3, on_done, rig, NULL) == 0)
        rig->entered++;
}

static void receive(struct rig *rig, uint32_t from, const uint8_t *bytes, size_t length)
{
    struct drarun_error err = {0};
    Drarun__Wire__Collective *message = drarun__wire__collective__unpack(NULL, length, bytes);
    if (message && coll_message(rig->coll, from, message, &err) < 0 && !err.text[0])
        abort();
    if (message)
        drarun__wire__collective__free_unpacked(message, NULL);
}

static void play(struct rig *rig, const uint8_t *data, size_t size)
{
    while (size >= 2) {
        uint32_t who = data[0];
        size_t length = data[1] < size - 2 ? data[1] : size - 2;
        if (who < WORKERS)
            receive(rig, who, data + 2, length);
        else
            act(rig, who, data + 2, length);
        data += 2 + length;
        size -= 2 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t counts[] = {RANKS};
    struct rig rig = {.tree = {.self = 1, .size = WORKERS, .radix = 2}};
    struct rankmap map;
    if (rankmap_build(counts, 1, WORKERS, 2, &map, NULL) < 0)
        abort();
    rig.coll = coll_new(&rig.tree, &map, on_send, &rig);
    if (rig.coll) {
        coll_on_missed(rig.coll, on_missed, &rig);
        play(&rig, data, size);
    }
    if (rig.done > rig.entered)
        abort();
    coll_free(rig.coll);
    rankmap_done(&map);
    return 0;
}
