/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/info_list.h"

static bool is_whole_array(const pmix_data_array_t *array);

static bool is_whole(const pmix_value_t *value)
{
    switch (value->type) {
    case PMIX_STRING:
        return value->data.string;
    case PMIX_PROC:
        return value->data.proc;
    case PMIX_BYTE_OBJECT:
    case PMIX_REGEX:
        return value->data.bo.bytes || value->data.bo.size == 0;
    case PMIX_DATA_ARRAY:
        return value->data.darray && is_whole_array(value->data.darray);
    default:
        return true;
    }
}

static bool is_whole_process(const pmix_proc_info_t *process)
{
    return process->hostname && process->executable_name;
}

static bool is_whole_array(const pmix_data_array_t *array)
{
    if (array->size > 0 && !array->array)
        return false;
    for (size_t i = 0; i < array->size; i++) {
        if (array->type == PMIX_INFO && !is_whole(&((const pmix_info_t *)array->array)[i].value))
            return false;
        if (array->type == PMIX_PROC_INFO &&
            !is_whole_process(&((const pmix_proc_info_t *)array->array)[i]))
            return false;
    }
    return true;
}

struct info_list info_list_new(void)
{
    void *list = PMIx_Info_list_start();
    return (struct info_list){list, !list};
}

void info_list_add(struct info_list *to, const char *key, const void *value, pmix_data_type_t type)
{
    if (!to->list || PMIx_Info_list_add(to->list, key, value, type) != PMIX_SUCCESS)
        to->failed = true;
}

void info_list_add_text(struct info_list *to, const char *key, const char *value)
{
    info_list_add(to, key, value, PMIX_STRING);
}

void info_list_add_buf(struct info_list *to, const char *key, struct buf *text)
{
    if (text->failed)
        to->failed = true;
    else
        info_list_add_text(to, key, text->data ? text->data : "");
    buf_done(text);
}

void info_list_add_part_take(struct info_list *to, const char *key, struct info_list *part)
{
    pmix_data_array_t array;
    pmix_status_t status = info_list_convert_take(part, &array);
    if (status == PMIX_SUCCESS)
        info_list_add(to, key, &array, PMIX_DATA_ARRAY);
    else if (status != PMIX_ERR_EMPTY)
        to->failed = true;
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

pmix_status_t info_list_convert_take(struct info_list *list, pmix_data_array_t *ret_array)
{
    pmix_status_t status = PMIX_ERR_NOMEM;
    PMIX_DATA_ARRAY_CONSTRUCT(ret_array, 0, PMIX_INFO);
    if (!list->failed)
        status = PMIx_Info_list_convert(list->list, ret_array);
    if (list->list)
        PMIx_Info_list_release(list->list);
    *list = (struct info_list){NULL, true};
    return status == PMIX_SUCCESS && !is_whole_array(ret_array) ? PMIX_ERR_NOMEM : status;
}
