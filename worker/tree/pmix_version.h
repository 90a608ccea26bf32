/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRARUN_WORKER_PMIX_VERSION_H
#define DRARUN_WORKER_PMIX_VERSION_H

/* "5.0.5": of the libpmix inside, as agents and the launcher are told. Any thread. */
const char *pmix_version(void);

#endif
