/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over simulated agents: messages go through queues that are delivered in random order
 * between pairs, in order within a pair, as TCP does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/wire/frame.h"
#include "worker/tree/coll.h"

#define AGENTS_MAX 64

struct packet {
    struct packet *next;
    uint32_t from, to;
    size_t length;
    uint8_t bytes[];
};

struct world;

struct sim_agent {
    struct world *world;
    struct tree tree;
    struct coll *coll;
    int done;
    int missed;
    int status;
    uint64_t context;
    struct buf result;
};

struct world {
    struct rankmap map;
    uint32_t agents;
    struct sim_agent agent[AGENTS_MAX];
    struct packet *queue, **tail;
    uint64_t messages_over_root;
};

static void sim_send(void *arg, uint32_t worker, const Drarun__Wire__Collective *message)
{
    struct sim_agent *agent = arg;
    size_t length = drarun__wire__collective__get_packed_size(message);
    assert_true(length < FRAME_MAX);
    struct packet *packet = calloc(1, sizeof *packet + length);
    assert_non_null(packet);
    packet->from = agent->tree.self;
    packet->to = worker;
    packet->length = drarun__wire__collective__pack(message, packet->bytes);
    *agent->world->tail = packet;
    agent->world->tail = &packet->next;
    agent->world->messages_over_root += worker == 0;
}

static void sim_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct sim_agent *agent = arg;
    agent->done++;
    agent->status = status;
    agent->context = context;
    buf_reset(&agent->result);
    buf_add(&agent->result, data, length);
}

static void sim_missed(void *arg, const char *key, const struct coll_range *ranges, size_t count)
{
    struct sim_agent *agent = arg;
    assert_int_equal(agent->done, 0);
    assert_string_equal(key, "f#1");
    assert_true(count <= 1 && ranges);
    agent->missed++;
}

static void world_init(struct world *world, uint32_t agents, uint32_t radix, uint32_t ranks)
{
    memset(world, 0, sizeof *world);
    world->agents = agents;
    world->tail = &world->queue;
    assert_int_equal(rankmap_build(&ranks, 1, agents, 0, &world->map, NULL), 0);
    for (uint32_t i = 0; i < agents; i++) {
        struct sim_agent *agent = &world->agent[i];
        agent->world = world;
        agent->tree = (struct tree){i, agents, radix};
        agent->coll = coll_new(&agent->tree, &world->map, sim_send, agent);
        assert_non_null(agent->coll);
        coll_on_missed(agent->coll, sim_missed, agent);
    }
}

static void world_done(struct world *world)
{
    for (uint32_t i = 0; i < world->agents; i++) {
        coll_free(world->agent[i].coll);
        buf_done(&world->agent[i].result);
    }
    rankmap_done(&world->map);
}

static bool pair_is_earlier(const struct packet *first, const struct packet *packet)
{
    for (const struct packet *p = first; p != packet; p = p->next)
        if (p->from == packet->from && p->to == packet->to)
            return true;
    return false;
}

/* Delivers one packet, chosen at random among the first of each pair. */
static void deliver_one(struct world *world)
{
    struct packet **at = &world->queue;
    for (int skip = rand() % 8; skip > 0 && (*at)->next; skip--)
        at = &(*at)->next;
    while (pair_is_earlier(world->queue, *at)) {
        struct packet **earlier = &world->queue;
        while (*earlier != *at && ((*earlier)->from != (*at)->from || (*earlier)->to != (*at)->to))
            earlier = &(*earlier)->next;
        at = earlier;
    }
    struct packet *packet = *at;
    *at = packet->next;
    if (!packet->next)
        world->tail = at;
    Drarun__Wire__Collective *message =
        drarun__wire__collective__unpack(NULL, packet->length, packet->bytes);
    struct drarun_error err = {0};
    assert_non_null(message);
    if (coll_message(world->agent[packet->to].coll, packet->from, message, &err) < 0)
        fail_msg("%s", err.text);
    drarun__wire__collective__free_unpacked(message, NULL);
    free(packet);
}

static void deliver_all(struct world *world)
{
    while (world->queue)
        deliver_one(world);
}

static bool is_member(const struct world *world, uint32_t worker, const struct coll_range *range)
{
    for (uint32_t rank = range->first; rank < range->first + range->count; rank++)
        if (rankmap_worker(&world->map, rank) == worker)
            return true;
    return false;
}

static void enter(struct world *world, uint32_t worker, const char *key,
                  const struct coll_range *range, size_t count, int status)
{
    struct drarun_error err = {0};
    char data[16];
    int length = snprintf(data, sizeof data, "<%u>", worker);
    struct sim_agent *agent = &world->agent[worker];
    if (coll_enter(agent->coll, key, range, count, status, data, (size_t)length, sim_done, agent,
                   &err) < 0)
        fail_msg("%s", err.text);
}

static void everyone_gets_every_part_once(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 9, 17, 64};
    static const uint32_t radices[] = {1, 2, 4, 8};
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
        for (size_t r = 0; r < ARRAY_LEN(radices); r++) {
            struct world world;
            world_init(&world, sizes[s], radices[r], sizes[s] * 2);
            for (uint32_t i = 0; i < sizes[s]; i++) {
                enter(&world, (i * 7 + 3) % sizes[s], "f#1", NULL, 0, 0);
                if (rand() % 2 && world.queue)
                    deliver_one(&world);
            }
            deliver_all(&world);
            for (uint32_t i = 0; i < sizes[s]; i++) {
                assert_int_equal(world.agent[i].done, 1);
                assert_int_equal(world.agent[i].context, world.agent[0].context);
                for (uint32_t k = 0; k < sizes[s]; k++) {
                    char part[16];
                    snprintf(part, sizeof part, "<%u>", k);
                    char *found = strstr(world.agent[i].result.data, part);
                    assert_non_null(found);
                    assert_null(strstr(found + 1, part));
                }
            }
            /* each agent hears from each child once: no agent sees more than its radix */
            assert_true(world.messages_over_root <= radices[r]);
            world_done(&world);
        }
}

static void subsets_leave_others_alone(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        struct world world;
        uint32_t agents = 2 + (uint32_t)rand() % 40, ranks = agents * 3;
        world_init(&world, agents, 1 + (uint32_t)rand() % 5, ranks);
        struct coll_range range = {(uint32_t)rand() % ranks, 1};
        range.count += (uint32_t)rand() % (ranks - range.first);
        for (uint32_t i = 0; i < agents; i++)
            if (is_member(&world, i, &range))
                enter(&world, i, "sub#1", &range, 1, 0);
        deliver_all(&world);
        for (uint32_t i = 0; i < agents; i++)
            assert_int_equal(world.agent[i].done, is_member(&world, i, &range));
        world_done(&world);
    }
}

static void a_bad_status_reaches_all(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 9, 2, 9);
    for (uint32_t i = 0; i < 9; i++)
        enter(&world, i, "f#1", NULL, 0, i == 7 ? -52 : 0);
    deliver_all(&world);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(world.agent[i].status, -52);
    world_done(&world);
}

/* Who has not entered by then counts it, too, so that all enter the next one with the same number;
 * who enters at the same time gets what the others get. */
static void what_is_given_up_fails_for_all(void **state)
{
    (void)state;
    srand(11);
    for (int round = 0; round < 2000; round++) {
        struct world world;
        bool late[AGENTS_MAX] = {false};
        uint32_t agents = 2 + (uint32_t)rand() % 12, entered = 0, failed = 0;
        world_init(&world, agents, 1 + (uint32_t)rand() % 3, agents);
        struct coll_range range = {(uint32_t)rand() % (agents - 1), 0};
        range.count = 2 + (uint32_t)rand() % (agents - range.first - 1);
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            late[i] = rand() % 3 == 0;
            if (!late[i]) {
                enter(&world, i, "f#1", &range, 1, 0);
                entered++;
            }
            if (rand() % 2 && world.queue)
                deliver_one(&world);
        }
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            if (!late[i] && rand() % 2)
                coll_give_up(world.agent[i].coll, "f#1", -24);
            if (late[i] && !world.agent[i].missed && rand() % 4 == 0)
                enter(&world, i, "f#1", &range, 1, 0);
            while (rand() % 2 && world.queue)
                deliver_one(&world);
        }
        for (uint32_t i = range.first; i < range.first + range.count; i++)
            if (!late[i] && !world.agent[i].done)
                coll_give_up(world.agent[i].coll, "f#1", -24);
        deliver_all(&world);
        for (uint32_t i = range.first; entered > 0 && i < range.first + range.count; i++) {
            const struct sim_agent *agent = &world.agent[i];
            assert_int_equal(agent->done + agent->missed, 1);
            failed += agent->missed || agent->status == -24;
            if (!agent->missed && agent->status == 0)
                assert_int_equal(agent->context, world.agent[range.first].context);
        }
        assert_true(failed == 0 || failed == range.count);
        for (uint32_t i = range.first; i < range.first + range.count; i++)
            world.agent[i].done = 0;
        for (uint32_t i = range.first; i < range.first + range.count; i++)
            enter(&world, i, "f#2", &range, 1, 0);
        deliver_all(&world);
        for (uint32_t i = 0; i < agents; i++) {
            assert_int_equal(world.agent[i].done, is_member(&world, i, &range));
            assert_int_equal(world.agent[i].status, 0);
        }
        world_done(&world);
    }
}

static void large_data_travels_in_pieces(void **state)
{
    struct world world;
    struct drarun_error err = {0};
    size_t length = 2 * FRAME_DATA_MAX + 12345;
    cleanup_free char *data = malloc(length);
    (void)state;
    assert_non_null(data);
    world_init(&world, 3, 1, 3);
    for (uint32_t i = 0; i < 3; i++) {
        memset(data, 'a' + (int)i, length);
        assert_int_equal(coll_enter(world.agent[i].coll, "f#1", NULL, 0, 0, data, length, sim_done,
                                    &world.agent[i], &err),
                         0);
    }
    deliver_all(&world);
    for (uint32_t i = 0; i < 3; i++) {
        size_t count[3] = {0};
        assert_int_equal(world.agent[i].result.len, 3 * length);
        for (size_t k = 0; k < 3 * length; k++)
            count[world.agent[i].result.data[k] - 'a']++;
        for (int k = 0; k < 3; k++)
            assert_int_equal(count[k], length);
    }
    world_done(&world);
}

static void foreign_messages_are_refused(void **state)
{
    struct world world;
    struct drarun_error err = {0};
    Drarun__Wire__Collective message = DRARUN__WIRE__COLLECTIVE__INIT;
    (void)state;
    world_init(&world, 4, 2, 4);
    message.key = unconst("f#1");
    /* down without having asked; up from one that is no child; twice from the same child */
    assert_true(coll_message(world.agent[1].coll, 0, &message, &err) < 0);
    message.up = true;
    assert_true(coll_message(world.agent[1].coll, 2, &message, &err) < 0);
    assert_int_equal(coll_message(world.agent[1].coll, 3, &message, &err), 0);
    assert_true(coll_message(world.agent[1].coll, 3, &message, &err) < 0);
    /* given up without a status; the end of what this agent decides itself */
    message.over = true;
    assert_true(coll_message(world.agent[1].coll, 3, &message, &err) < 0);
    message.up = false;
    message.status = -24;
    message.n_members = 1;
    Drarun__Wire__Range own = DRARUN__WIRE__RANGE__INIT, *members = &own;
    own.first = 1, own.count = 1;
    message.members = &members;
    message.key = unconst("g#1");
    assert_true(coll_message(world.agent[1].coll, 0, &message, &err) < 0);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_gets_every_part_once),
        cmocka_unit_test(subsets_leave_others_alone),
        cmocka_unit_test(a_bad_status_reaches_all),
        cmocka_unit_test(what_is_given_up_fails_for_all),
        cmocka_unit_test(large_data_travels_in_pieces),
        cmocka_unit_test(foreign_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
