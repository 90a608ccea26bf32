/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "plugin/kubelet/dra_private.h"
#include "plugin/kubelet/registration.pb-c.h"

void dra_get_info(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    /* the kubelet takes the first that it knows */
    char *versions[] = {unconst("v1.DRAPlugin"), unconst("v1beta1.DRAPlugin"),
                        unconst("v1.DRAResourceHealth"), unconst("v1alpha1.DRAResourceHealth")};
    struct dra_driver *driver = arg;
    Kubelet__PluginInfo info = KUBELET__PLUGIN_INFO__INIT;
    Kubelet__InfoRequest *request = kubelet__info_request__unpack(NULL, length, message);
    if (!request) {
        dra_bad_message_take(call);
        return;
    }
    kubelet__info_request__free_unpacked(request, NULL);
    info.type = unconst("DRAPlugin");
    info.name = driver->name;
    info.endpoint = driver->endpoint;
    info.supported_versions = versions;
    info.n_supported_versions = ARRAY_LEN(versions);
    dra_answer_take(call, &info.base);
}

void dra_notify(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    struct dra_driver *driver = arg;
    Kubelet__RegistrationStatusResponse response = KUBELET__REGISTRATION_STATUS_RESPONSE__INIT;
    Kubelet__RegistrationStatus *status =
        kubelet__registration_status__unpack(NULL, length, message);
    if (!status) {
        dra_bad_message_take(call);
        return;
    }
    if (status->plugin_registered)
        log_note("%s: registered with the kubelet", driver->name);
    else
        log_error("%s: the kubelet refuses the driver: %s", driver->name, status->error);
    driver->handler->registered(status->plugin_registered, status->error, driver->arg);
    kubelet__registration_status__free_unpacked(status, NULL);
    dra_answer_take(call, &response.base);
}
