/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/info_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

static void parts_become_infos(void **state)
{
    struct info_list list = info_list_new(), part = info_list_new(), none = info_list_new();
    struct buf text = BUF_INIT;
    pmix_data_array_t array;
    uint32_t number = 7;
    (void)state;
    buf_add_str(&text, "peers");
    info_list_add(&part, PMIX_NODEID, &number, PMIX_UINT32);
    info_list_add_buf(&part, PMIX_LOCAL_PEERS, &text);
    info_list_add_text(&list, PMIX_JOBID, "job");
    info_list_add_part_take(&list, PMIX_NODE_INFO_ARRAY, &part);
    info_list_add_part_take(&list, PMIX_APP_INFO_ARRAY, &none);
    assert_int_equal(info_list_convert_take(&list, &array), PMIX_SUCCESS);
    assert_int_equal(array.size, 2);
    const pmix_info_t *infos = array.array;
    assert_string_equal(infos[0].value.data.string, "job");
    assert_int_equal(infos[1].value.type, PMIX_DATA_ARRAY);
    assert_int_equal(infos[1].value.data.darray->size, 2);
    assert_string_equal(
        ((const pmix_info_t *)infos[1].value.data.darray->array)[1].value.data.string, "peers");
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

static void nothing_is_empty(void **state)
{
    struct info_list list = info_list_new();
    pmix_data_array_t array;
    (void)state;
    assert_int_equal(info_list_convert_take(&list, &array), PMIX_ERR_EMPTY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

/* A text that is missing fails the whole, also within a part. */
static void what_lacks_fails(void **state)
{
    struct info_list list = info_list_new(), part = info_list_new();
    struct buf text = {.failed = true};
    pmix_data_array_t array;
    (void)state;
    info_list_add_text(&list, PMIX_JOBID, "job");
    info_list_add_buf(&part, PMIX_LOCAL_PEERS, &text);
    info_list_add_part_take(&list, PMIX_NODE_INFO_ARRAY, &part);
    assert_int_equal(info_list_convert_take(&list, &array), PMIX_ERR_NOMEM);
    PMIX_DATA_ARRAY_DESTRUCT(&array);

    pmix_info_t lent;
    pmix_data_array_t inner = {PMIX_INFO, 1, &lent};
    PMIX_INFO_CONSTRUCT(&lent);
    PMIX_LOAD_KEY(lent.key, PMIX_HOSTNAME);
    lent.value.type = PMIX_STRING; /* without a text, as libpmix leaves it when it has no memory */
    list = info_list_new();
    info_list_add(&list, PMIX_NODE_INFO_ARRAY, &inner, PMIX_DATA_ARRAY);
    assert_int_equal(info_list_convert_take(&list, &array), PMIX_ERR_NOMEM);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

/* Also where libpmix had the memory for the first ones of several. */
static void lacks_of_any_element_fail(void **state)
{
    static const pmix_data_type_t types[] = {PMIX_INFO, PMIX_PROC_INFO};
    char text[] = "text";
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(types); i++) {
        bool whole = i % 2 == 1;
        struct info_list list = info_list_new();
        pmix_info_t infos[3];
        pmix_proc_info_t processes[3];
        pmix_data_array_t array, inner = {types[i / 2], 3, infos};
        if (inner.type == PMIX_PROC_INFO)
            inner.array = processes;
        for (size_t k = 0; k < 3; k++) {
            bool lacks = k == 1 && !whole;
            PMIX_INFO_CONSTRUCT(&infos[k]);
            PMIX_LOAD_KEY(infos[k].key, PMIX_HOSTNAME);
            infos[k].value.type = PMIX_STRING;
            infos[k].value.data.string = lacks ? NULL : text;
            PMIX_PROC_INFO_CONSTRUCT(&processes[k]);
            processes[k].hostname = text;
            processes[k].executable_name = lacks ? NULL : text;
        }
        info_list_add(&list, PMIX_NODE_INFO_ARRAY, &inner, PMIX_DATA_ARRAY);
        assert_int_equal(info_list_convert_take(&list, &array),
                         whole ? PMIX_SUCCESS : PMIX_ERR_NOMEM);
        PMIX_DATA_ARRAY_DESTRUCT(&array);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_become_infos),
        cmocka_unit_test(nothing_is_empty),
        cmocka_unit_test(what_lacks_fails),
        cmocka_unit_test(lacks_of_any_element_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
