/* SPDX-License-Identifier: MIT */
/* How exceptions pass frames that hotfn has made: what an image's unwinder is, and where the C
 * library's functions are by which unwinders find tables. */
#ifndef HFN_IMAGE_UNWINDERS_H
#define HFN_IMAGE_UNWINDERS_H

#include "image/image.h"

/* Has the image an unwinder for its own exceptions that is not libgcc_s?  Such a module imports
 * functions of the dynamic linker that find the module of an address, and nothing of libgcc_s.  If
 * it has no exception table, it throws nothing and only reads stacks, as crash handlers do. */
bool hfn_image_has_own_unwinder(const hotfn_image *image);
/* Is the image an unwinder that searches tables by dl_iterate_phdr, and remembers what it found?
 * LLVM's libunwind does, and libgcc_s before GCC 12 or built for an older glibc.  They export the
 * functions that a compiler calls for exceptions, and do not import _dl_find_object. */
bool hfn_image_remembers_tables(const hotfn_image *image);
/* ELF: the RVA of the function that the image exports by this name; 0: none. */
uint64_t hfn_image_find_export(const hotfn_image *image, const char *name);

#endif
