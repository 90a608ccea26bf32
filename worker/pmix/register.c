/* SPDX-License-Identifier: Apache-2.0 */
/* What the library is told about the job, and through it every rank (PMIx 4.1 section 16.2.3,
 * "Registering job-level information"; reference: which keys MPI libraries need). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/topo/cpus.h"
#include "worker/host/session.h"
#include "worker/pmix/host_private.h"
#include "worker/pmix/info_list.h"

static void add_u32(struct info_list *list, const char *key, uint32_t value)
{
    info_list_add(list, key, &value, PMIX_UINT32);
}

static void add_u16(struct info_list *list, const char *key, uint32_t value)
{
    uint16_t small = (uint16_t)value;
    info_list_add(list, key, &small, PMIX_UINT16);
}

static void add_rank(struct info_list *list, const char *key, uint32_t value)
{
    pmix_rank_t rank = value;
    info_list_add(list, key, &rank, PMIX_PROC_RANK);
}

static void add_bool(struct info_list *list, const char *key, bool value)
{
    info_list_add(list, key, &value, PMIX_BOOL);
}

/* Workers without ranks are no nodes of the job: libpmix wants as many nodes as parts of the ranks.
 */
static void add_maps(const struct rankmap *map, char *const *nodes, struct info_list *list)
{
    struct buf hosts = BUF_INIT, ranks = BUF_INIT;
    char *node_map = NULL, *proc_map = NULL;
    for (uint32_t worker = 0; worker < map->workers; worker++)
        if (map->local_sizes[worker] > 0)
            buf_printf(&hosts, "%s%s", hosts.len > 0 ? "," : "", nodes[worker]);
    rankmap_ppn_text(map, &ranks);
    list->failed |= hosts.failed || ranks.failed ||
                    PMIx_generate_regex(hosts.data, &node_map) != PMIX_SUCCESS ||
                    PMIx_generate_ppn(ranks.data, &proc_map) != PMIX_SUCCESS;
    if (!list->failed) {
        info_list_add(list, PMIX_NODE_MAP, node_map, PMIX_REGEX);
        info_list_add(list, PMIX_PROC_MAP, proc_map, PMIX_REGEX);
    }
    free(node_map);
    free(proc_map);
    buf_done(&hosts);
    buf_done(&ranks);
}

static void add_topology(const struct pmix_host *host, struct info_list *list)
{
    /* XML rather than shared memory: as fast, and tolerant of another hwloc in the rank */
    const char *xml = topology_xml(host->topology);
    if (xml)
        info_list_add_text(list, PMIX_HWLOC_XML_V2, xml);
}

static uint32_t nodes_with_ranks(const struct rankmap *map)
{
    uint32_t count = 0;
    for (uint32_t worker = 0; worker < map->workers; worker++)
        count += map->local_sizes[worker] > 0;
    return count;
}

static void add_parent(const struct pmix_host *host, const struct rank_group *group,
                       struct info_list *list)
{
    pmix_proc_t parent = pmix_proc_of(host, group->parent);
    add_bool(list, PMIX_SPAWNED, true);
    info_list_add(list, PMIX_PARENT_ID, &parent, PMIX_PROC);
}

/* libpmix and MPI libraries ask whether the key is there. libpmix waits for all ranks here before
 * it tells us, if the last such key has a rank as its value; Open MPI 5 wants a bool in its own. So
 * it is followed by one that no client reads. */
static void add_stop(const struct pmix_host *host, const struct rank_group *group,
                     struct info_list *list)
{
    if (group->index < host->released)
        return;
    if (group->stop_at == DRARUN__WIRE__STOP_AT__STOP_AT_INIT)
        add_rank(list, PMIX_DEBUG_STOP_IN_INIT, PMIX_RANK_WILDCARD);
    if (group->stop_at == DRARUN__WIRE__STOP_AT__STOP_AT_APP) {
        add_bool(list, PMIX_DEBUG_STOP_IN_APP, true);
        add_rank(list, PMIX_DEBUG_STOP_ON_EXEC, PMIX_RANK_WILDCARD);
    }
}

/* Open MPI 4 makes a directory there for each rank, named by its number in the group, and in the
 * end removes this one with all that is in it: so no two groups have the same, and none the
 * session's. malloc'ed; NULL: out of memory. */
static char *directory_of(const struct pmix_host *host, const struct rank_group *group)
{
    char *path = NULL;
    return asprintf(&path, "%s/s%u", host->session_dir, group->index) < 0 ? NULL : path;
}

static int make_directory(const struct pmix_host *host, const struct rank_group *group,
                          struct drarun_error *err)
{
    cleanup_free char *path = directory_of(host, group), *made = NULL;
    if (!path)
        return error_set(err, ENOMEM, "PMIx server: out of memory");
    return session_make(path, &made, err);
}

static void remove_directory(const struct pmix_host *host, const struct rank_group *group)
{
    cleanup_free char *path = directory_of(host, group);
    if (path)
        session_remove(path); /* what stays goes with the session directory */
}

static void add_directory(const struct pmix_host *host, const struct rank_group *group,
                          struct info_list *list)
{
    cleanup_free char *path = directory_of(host, group);
    if (path)
        info_list_add_text(list, PMIX_NSDIR, path);
    list->failed |= !path;
}

static void add_job(const struct pmix_host *host, const struct rank_group *group,
                    struct info_list *list)
{
    const struct rankmap *map = &group->map;
    info_list_add_text(list, PMIX_JOBID, group->nspace);
    add_maps(map, host->job->nodes, list);
    add_u32(list, PMIX_UNIV_SIZE, agent_job_universe(host->job));
    add_u32(list, PMIX_JOB_SIZE, map->ranks);
    add_u32(list, PMIX_MAX_PROCS, map->ranks);
    add_u32(list, PMIX_JOB_NUM_APPS, map->apps);
    add_u32(list, PMIX_NUM_NODES, nodes_with_ranks(map));
    add_rank(list, PMIX_NPROC_OFFSET, group->first);
    if (group->spawned)
        add_parent(host, group, list);
    add_stop(host, group, list);
    add_u32(list, PMIX_SESSION_ID, 1);
    info_list_add_text(list, PMIX_TMPDIR, host->session_dir);
    add_directory(host, group, list);
    add_bool(list, PMIX_TDIR_RMCLEAN, true);
    if (group->local_count > 0) /* nobody else asks, and it is the largest part by far */
        add_topology(host, list);
}

static void add_apps(const struct pmix_host *host, const struct rank_group *group,
                     struct info_list *list)
{
    uint32_t leader = 0;
    for (uint32_t app = 0; app < group->map.apps; app++) {
        const Drarun__Wire__App *wire = host->job->apps[group->first_app + app];
        struct buf command = BUF_INIT;
        uint32_t size = group->map.app_firsts[app + 1] - group->map.app_firsts[app];
        for (size_t i = 0; i < wire->n_argv; i++)
            buf_printf(&command, "%s%s", i > 0 ? " " : "", wire->argv[i]);
        struct info_list part = info_list_new();
        add_u32(&part, PMIX_APPNUM, app);
        add_u32(&part, PMIX_APP_SIZE, size);
        add_rank(&part, PMIX_APPLDR, leader);
        info_list_add_text(&part, PMIX_WDIR, wire->wd[0] ? wire->wd : "/");
        info_list_add_buf(&part, PMIX_APP_ARGV, &command);
        info_list_add_part_take(list, PMIX_APP_INFO_ARRAY, &part);
        leader += size;
    }
}

static uint32_t first_rank_of(const struct rankmap *map, uint32_t worker)
{
    for (size_t b = 0; b < map->block_count; b++)
        if (map->blocks[b].worker == worker)
            return map->blocks[b].first;
    return 0;
}

static void add_node(const struct pmix_host *host, const struct rank_group *group,
                     struct info_list *list, uint32_t worker)
{
    const struct rankmap *map = &group->map;
    struct buf peers = BUF_INIT;
    struct info_list part = info_list_new();
    rankmap_peers_text(map, worker, &peers);
    info_list_add_text(&part, PMIX_HOSTNAME, host->job->nodes[worker]);
    add_u32(&part, PMIX_NODEID, worker);
    add_u32(&part, PMIX_NODE_SIZE, map->local_sizes[worker]);
    add_u32(&part, PMIX_LOCAL_SIZE, map->local_sizes[worker]);
    add_rank(&part, PMIX_LOCALLDR, first_rank_of(map, worker));
    info_list_add_buf(&part, PMIX_LOCAL_PEERS, &peers);
    if (worker == host->job->worker && group->oversubscribed)
        add_bool(&part, PMIX_NODE_OVERSUBSCRIBED, true);
    info_list_add_part_take(list, PMIX_NODE_INFO_ARRAY, &part);
}

/* Where a rank runs: its CPUs, and what it shares with whom, in words of libpmix. That reads the
 * topology that it was given when it was started. */
static void add_binding(const struct pmix_host *host, struct info_list *part, uint32_t rank)
{
    int64_t index = agent_job_local_index(host->job, rank);
    if (index < 0 || (uint64_t)index >= host->cpus_count || host->cpus[index].count == 0)
        return;
    const struct rank_cpus *cpus = &host->cpus[index];
    struct buf text = BUF_INIT;
    cpulist_format(cpus->ids, cpus->count, &text);
    info_list_add_buf(part, PMIX_CPUSET, &text);
    if (!topology_get(host->topology))
        return;
    hwloc_bitmap_t bitmap = hwloc_bitmap_alloc();
    pmix_cpuset_t cpuset = {.source = unconst("hwloc"), .bitmap = bitmap};
    char *locality = NULL;
    for (size_t i = 0; bitmap && i < cpus->count; i++)
        hwloc_bitmap_set(bitmap, cpus->ids[i]);
    part->failed |= !bitmap;
    if (bitmap && PMIx_server_generate_locality_string(&cpuset, &locality) == PMIX_SUCCESS &&
        locality)
        info_list_add_text(part, PMIX_LOCALITY_STRING, locality);
    free(locality);
    hwloc_bitmap_free(bitmap);
}

/* The ranks of earlier groups on the same node have numbers there that come before. */
static uint32_t node_rank(const struct pmix_host *host, const struct rank_group *group,
                          uint32_t rank)
{
    return rankmap_place(&host->job->map, group->first + rank).local_rank;
}

static void add_rank_info(const struct pmix_host *host, const struct rank_group *group,
                          struct info_list *list, uint32_t rank)
{
    struct rank_place place = rankmap_place(&group->map, rank);
    struct info_list part = info_list_new();
    add_rank(&part, PMIX_RANK, rank);
    add_u32(&part, PMIX_APPNUM, place.app);
    add_rank(&part, PMIX_GLOBAL_RANK, group->first + rank);
    add_rank(&part, PMIX_APP_RANK, place.app_rank);
    add_u16(&part, PMIX_LOCAL_RANK, place.local_rank);
    add_u16(&part, PMIX_NODE_RANK, node_rank(host, group, rank));
    add_u32(&part, PMIX_NODEID, place.worker);
    info_list_add_text(&part, PMIX_HOSTNAME, host->job->nodes[place.worker]);
    add_bool(&part, PMIX_SPAWNED, group->spawned);
    add_u32(&part, PMIX_REINCARNATION, 0);
    add_binding(host, &part, group->first + rank);
    info_list_add_part_take(list, PMIX_PROC_DATA, &part);
}

static int register_ranks(const struct pmix_host *host, const struct rank_group *group,
                          struct drarun_error *err)
{
    for (uint32_t i = 0; i < group->local_count; i++) {
        pmix_proc_t proc = pmix_proc_of(host, host->job->local[group->local_first + i]);
        pmix_status_t status =
            PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
        if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
            return pmix_error(err, status, "PMIx server: register a rank");
    }
    return 0;
}

static int register_all(const struct pmix_host *host, const struct rank_group *group,
                        struct drarun_error *err)
{
    struct info_list list = info_list_new();
    add_job(host, group, &list);
    add_apps(host, group, &list);
    for (uint32_t worker = 0; worker < group->map.workers; worker++)
        if (group->map.local_sizes[worker] > 0)
            add_node(host, group, &list, worker);
    for (uint32_t rank = 0; rank < group->map.ranks; rank++)
        add_rank_info(host, group, &list, rank);
    pmix_data_array_t info;
    pmix_status_t status = info_list_convert_take(&list, &info);
    if (status == PMIX_SUCCESS)
        status = PMIx_server_register_nspace(group->nspace, (int)group->local_count, info.array,
                                             info.size, NULL, NULL);
    PMIX_DATA_ARRAY_DESTRUCT(&info);
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        return pmix_error(err, status, "PMIx server: register the job");
    return register_ranks(host, group, err);
}

int pmix_register_group(struct pmix_host *host, const struct rank_group *group,
                        struct drarun_error *err)
{
    int rc = make_directory(host, group, err);
    if (rc < 0)
        return rc;
    rc = register_all(host, group, err);
    if (rc < 0)
        remove_directory(host, group); /* another group may get its number */
    return rc;
}

/* Nodes of another job have numbers after ours, even if they are the same: what their ranks share
 * with ours is not known. */
static void add_far_ranks(const struct pmix_host *host, const struct rankmap *map,
                          char *const *hosts, struct info_list *list)
{
    for (uint32_t rank = 0; rank < map->ranks; rank++) {
        struct rank_place place = rankmap_place(map, rank);
        struct info_list part = info_list_new();
        add_rank(&part, PMIX_RANK, rank);
        add_u32(&part, PMIX_APPNUM, place.app);
        add_rank(&part, PMIX_APP_RANK, place.app_rank);
        add_u16(&part, PMIX_LOCAL_RANK, place.local_rank);
        add_u16(&part, PMIX_NODE_RANK, place.local_rank);
        add_u32(&part, PMIX_NODEID, host->job->map.workers + place.worker);
        info_list_add_text(&part, PMIX_HOSTNAME, hosts[place.worker]);
        info_list_add_part_take(list, PMIX_PROC_DATA, &part);
    }
}

int pmix_register_far(const struct pmix_host *host, const char *nspace, const struct rankmap *map,
                      char *const *hosts, struct drarun_error *err)
{
    struct info_list list = info_list_new();
    pmix_data_array_t info;
    info_list_add_text(&list, PMIX_JOBID, nspace);
    add_maps(map, hosts, &list);
    add_u32(&list, PMIX_JOB_SIZE, map->ranks);
    add_u32(&list, PMIX_MAX_PROCS, map->ranks);
    add_u32(&list, PMIX_JOB_NUM_APPS, map->apps);
    add_u32(&list, PMIX_NUM_NODES, nodes_with_ranks(map));
    add_far_ranks(host, map, hosts, &list);
    pmix_status_t status = info_list_convert_take(&list, &info);
    if (status == PMIX_SUCCESS)
        status = PMIx_server_register_nspace(nspace, 0, info.array, info.size, NULL, NULL);
    PMIX_DATA_ARRAY_DESTRUCT(&info);
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED
               ? 0
               : pmix_error(err, status, "PMIx server: register another job");
}

void pmix_deregister_group(const struct pmix_host *host, const struct rank_group *group)
{
    PMIx_server_deregister_nspace(group->nspace, NULL, NULL);
    remove_directory(host, group);
}
