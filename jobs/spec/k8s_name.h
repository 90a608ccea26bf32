/* SPDX-License-Identifier: Apache-2.0 */
/* Names as Kubernetes' API server accepts them (apimachinery's util/validation). Pure. */
#ifndef DRARUN_JOBS_K8S_NAME_H
#define DRARUN_JOBS_K8S_NAME_H

#include <stdbool.h>

#define K8S_LABEL_MAX 63
#define K8S_SUBDOMAIN_MAX 253
#define K8S_DEVICE_DOMAIN_MAX 63 /* of an attribute or a capacity */
#define K8S_DEVICE_ID_MAX 32

bool k8s_is_label(const char *text);       /* DNS label, RFC 1123: a-z, 0-9, inner "-", 63 */
bool k8s_is_subdomain(const char *text);   /* such labels joined by points, 253 */
bool k8s_is_qualified(const char *text);   /* [SUBDOMAIN/]NAME: keys of labels, resources */
bool k8s_is_domain_path(const char *text); /* SUBDOMAIN/PATH, its characters those of a URL */
bool k8s_is_label_value(const char *text); /* may be empty */
/* [DOMAIN/]ID: an attribute or a capacity of a device */
bool k8s_is_device_name(const char *text);
bool k8s_is_env_name(const char *text); /* what every shell can set: A-Z, a-z, 0-9, _ */

#endif
