/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* OpenZFS's libnvpair allocates by this header's macros, libzpool frees by those of sys/zfs_context.h: both are libumem's. */
#ifndef TERRACE_USERS_OPENZFS_SYS_KMEM_H
#define TERRACE_USERS_OPENZFS_SYS_KMEM_H

#include <umem.h>

#define KM_SLEEP UMEM_NOFAIL
#define KM_NOSLEEP UMEM_DEFAULT
#define kmem_alloc(_s, _f) umem_alloc(_s, _f)
#define kmem_free(_b, _s) umem_free(_b, _s)

#endif
